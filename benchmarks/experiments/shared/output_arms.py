"""The arms that see outputs and labels: MetricOpt on outputs, and its rivals of today.

Each with the row it fills. What phi methods among them search is an adapter with output
offsets, unless a row says that it goes without.
"""

from dataclasses import replace
from typing import Any

from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared.plans import Plan, Plans
from benchmarks.report.layout import Row, split_budget
from benchmarks.runs.spec import Arm

QUERIES = 15
"""Of MetricOpt on outputs, and of what picks among fine-tunings."""
FEWER, MORE = 10, 50
"""Further budgets of MetricOpt on outputs."""
RIVAL_QUERIES = 150
"""Of rivals that search, on the way to which fewer are read off."""
SCORES, GRADIENTS = "outputs and labels", "loss gradients"
FORMULA, VALUES = "formula", "metric values"

OURS = "metricopt-outputs"
LINE = ("prior-adjusted", "class-weighted")
"""Losses of the weighted-loss line, by the beginnings of their names."""
COUNTED = ("mcr", "jaccard", "f1", "f-macro", "g-mean", "worst-class-error")
"""Metrics whose formula the soft ceiling knows."""
SHARED = (
    "prior-correction",
    "cma-offsets",
    "fw-eg",
    "weighted-loss",
    "portfolio",
    "adaptive-surrogates",
    "lq-cma-es",
    "trust-region-bo",
    OURS,
    f"{OURS}-adapter",
    "cma-es-no-harm",
    "guided-cma-no-harm",
    "metricopt-no-harm",
    "dictionary",
    "white-box",
)
"""Arms that any table can have, beside those that depend on its problems."""
EFFICIENT_ARMS = (
    OURS,
    "prior-correction",
    "weighted-loss",
    "portfolio",
    "adaptive-surrogates",
    "cma-offsets",
    "trust-region-bo",
)
"""Arms of the comparison at equal queries."""


def _row(name: str, label: str, sees: str, note: str = "") -> Row:
    return Row(name, label, "cross-entropy", note=note, sees=sees)


ROWS = (
    _row(
        "threshold-shift",
        "threshold shift",
        SCORES,
        "tries every threshold on the observe split; needs the scores of the network, "
        "which a black box hides",
    ),
    _row(
        "prior-correction",
        "prior correction",
        SCORES,
        "the logits take the class shares of observe for those of training",
    ),
    _row(
        "cw-plugin",
        "class weights, pair by pair",
        SCORES,
        "line searches over pairs of classes; queries on chosen examples, which a "
        "black box does not offer",
    ),
    _row("cma-offsets", "class offsets by CMA-ES", SCORES),
    _row(
        "threshold-grid",
        "threshold grid",
        SCORES,
        "100 thresholds, as scikit-learn's TunedThresholdClassifierCV tries them",
    ),
    _row("fw-eg", "FW-EG", "edited predictions"),
    _row(
        "weighted-loss",
        "weighted-loss line",
        GRADIENTS,
        "fine-tunings under prior-adjusted and class-weighted cross-entropy, of which "
        "queries pick one",
    ),
    _row(
        "portfolio",
        "portfolio of losses",
        GRADIENTS,
        "fine-tunings under every loss that suits the outputs, of which queries pick "
        "one",
    ),
    _row("adaptive-surrogates", "adaptive surrogates", SCORES),
    _row("lq-cma-es", "lq-CMA-ES", VALUES),
    _row("trust-region-bo", "Bayesian optimisation, trust region", VALUES),
    _row(OURS, "MetricOpt on outputs (ours)", SCORES),
    *(
        _row(f"{OURS}-q{queries}", f"MetricOpt on outputs, {queries} queries", SCORES)
        for queries in (FEWER, MORE)
    ),
    _row(
        f"{OURS}-adapter",
        "MetricOpt on outputs, no offsets",
        SCORES,
        "its adapter has no output offsets, like that of all rows above the rivals",
    ),
    _row(
        f"{OURS}-unsorted",
        "MetricOpt on outputs, no sorted recalls",
        SCORES,
        "without the statistics in which the worst class is linear",
    ),
    _row(
        "cma-es-no-harm",
        "CMA-ES + no harm (ours)",
        SCORES,
        "phi is cross-fitted from what CMA-ES queried, and kept only if its gain shows",
    ),
    _row("guided-cma-no-harm", "guided CMA-ES + no harm (ours)", SCORES),
    _row("metricopt-no-harm", "MetricOpt + no harm (ours)", SCORES),
    _row(
        "dictionary",
        "ceiling: dictionary",
        FORMULA,
        "recognises a known metric by two or three queries and optimises its formula",
    ),
    _row("white-box", "ceiling: soft metric", FORMULA),
)
"""All rows, in the order of tables."""


ORACLE_ROW = Row(
    "oracle-test",
    "oracle: CMA-ES on test itself",
    note="no result: one search on the test split, to show what the adapter can "
    "express at least",
    sees="test",
)


def search_rows(base: str) -> tuple[Row, ...]:
    """Return the rows of searches by metric queries, tested against a base row."""
    return (
        Row("random-search", "random search", base, sees=VALUES),
        Row("cma-es", "CMA-ES", base, sees=VALUES),
        Row("guided-cma", "guided CMA-ES (ours)", base, sees=GRADIENTS),
    )


def rows(*names: str) -> tuple[Row, ...]:
    """Return the rows of some arms, with those of other budgets, in order."""
    return tuple(row for row in ROWS if split_budget(row.name)[0] in names)


def only(base: str, *names: str) -> tuple[Row, ...]:
    """Return the rows of these names alone, tested against a base row."""
    return tuple(replace(row, base_row=base) for row in ROWS if row.name in names)


def ours(queries: int = QUERIES, *, offsets: bool = True, **settings: Any) -> Plan:
    """Return MetricOpt on outputs, with settings of the method."""
    return Plan(arms.method(OURS, **settings), queries, offsets=offsets)


def our_plans() -> dict[str, Plan]:
    """Return MetricOpt on outputs, and with few queries, by row."""
    return {OURS: ours(), f"{OURS}-q{FEWER}": ours(FEWER)}


def patient_plans() -> dict[str, Plan]:
    """Return MetricOpt on outputs with more queries than it needs, by row."""
    return {f"{OURS}-q{MORE}": ours(MORE)}


def without_offsets_plans() -> dict[str, Plan]:
    """Return MetricOpt on outputs for an adapter without offsets, by row."""
    return {f"{OURS}-adapter": ours(offsets=False)}


def unsorted_plans() -> dict[str, Plan]:
    """Return MetricOpt on outputs without the statistics of the worst class, by row."""
    return {f"{OURS}-unsorted": ours(left_out=["decisions: sorted"])}


def no_harm_plans(queries: int, **settings: Any) -> dict[str, Plan]:
    """Return searches whose proposals need evidence, by row.

    Args:
        queries: the most a run may make; `RIVAL_QUERIES` if there are more.
        **settings: of the searches.
    """
    most = min(queries, RIVAL_QUERIES)
    return {
        f"{name}-no-harm": Plan(Arm("no-harm", name, settings), most, offsets=True)
        for name in ("cma-es", "guided-cma")
    }


def line_plans() -> dict[str, Plan]:
    """Return queries that pick one of many fine-tunings, by row."""
    line = {"settings": {"losses": list(LINE)}}
    return {
        "weighted-loss": Plan(arms.method("portfolio", **line), QUERIES, offsets=True),
        "portfolio": Plan(arms.method("portfolio"), QUERIES, offsets=True),
    }


def rival_plans(queries: int) -> dict[str, Plan]:
    """Return the rivals that search for phi, by row.

    Args:
        queries: the most a run may make; `RIVAL_QUERIES` if there are more.
    """
    most = min(queries, RIVAL_QUERIES)
    return {
        name: Plan(arms.method(name), most, offsets=True)
        for name in ("adaptive-surrogates", "lq-cma-es", "trust-region-bo")
    }


def beside_offsets(plans: Plans, tests: int) -> dict[str, Plan]:
    """Return the untouched network, and rows that all search with output offsets.

    Args:
        plans: how these rows are filled.
        tests: repetitions within each of their runs.
    """
    found = {"cross-entropy": arms.untouched()}
    for row, plan in plans.items():
        found[row] = replace(plan, meta_tests=tests, offsets=True)
    return found


def post_hoc_plans(*names: str) -> dict[str, Plan]:
    """Return post-hoc shifts, by row; a budget of 0 leaves their queries to them."""
    return {name: Plan(Arm(name)) for name in names}


def ceiling_plans(metric: str) -> dict[str, Plan]:
    """Return what knows formulas, by row; one of the confusion matrix can be smooth."""
    found = {"dictionary": Plan(arms.method("dictionary"), QUERIES, offsets=True)}
    if metric in COUNTED:
        found["white-box"] = Plan(
            arms.method("white-box", formula=metric), offsets=True
        )
    return found
