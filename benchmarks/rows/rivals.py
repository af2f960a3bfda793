"""Rivals of today: losses among which queries pick, surrogates and searches.

All of them search an adapter with output offsets, where outputs can have any.
"""

from typing import Any

from baselines.phi_methods.contract import RIVALS
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import UNTOUCHED, Row, Run, always, register, small_phi
from benchmarks.rows.controls import method
from benchmarks.runs.spec import Unit

QUERIES = 150
"""Queries of a rival that searches, on the way to which fewer are read off."""
PICKED_BY = 15
"""Queries that pick among fine-tunings, as many as MetricOpt on outputs makes."""
LINE = ("prior-adjusted", "class-weighted")
"""Losses of the weighted-loss line, by the beginnings of their names."""
FEWER_MARKS = {"settings": {"marks": [3, 6]}}


def rival(name: str, label: str = "", **more: Any) -> Row:
    """Return the row of a rival.

    Args:
        name: name of the row. Without a `run`, the row is the method of that name in
            `RIVALS`, which makes up to 150 queries.
        label: name as printed; empty for the name with spaces for hyphens.
        **more: other fields of the row.
    """

    def run(problem: Problem, metric: Unit) -> Run:
        queries = min(problem.size.queries, QUERIES)
        return Run(method(name), queries, offsets=True)

    known = {"run": run, "base": (UNTOUCHED,), **more}
    return Row(name, label or name.replace("-", " "), "rivals", **known)


def _picked(
    name: str, label: str, note: str, losses: tuple[str, ...] = (), **more: Any
) -> Row:
    """Return the row of fine-tunings, of which queries pick one.

    Args:
        name: name of the row.
        label: name as printed.
        note: printed below the table.
        losses: beginnings of the names of the losses; empty for all that suit.
        **more: other fields of the row.
    """
    settings = {"settings": {"losses": list(losses)}} if losses else {}
    run = always(Run(method("portfolio", **settings), PICKED_BY, offsets=True))
    known = {"sees": "loss gradients", "note": note, "short": FEWER_MARKS, **more}
    return rival(name, label, run=run, **known)


WEIGHTED_LOSS = _picked(
    "weighted-loss",
    "weighted-loss line",
    "fine-tunings under prior-adjusted and class-weighted cross-entropy, of which "
    "queries pick one",
    LINE,
)
PORTFOLIO = _picked(
    "portfolio",
    "portfolio of losses",
    "fine-tunings under every loss that suits the outputs, of which queries pick one",
    is_brief=True,
)
ADAPTIVE_SURROGATES = rival(
    "adaptive-surrogates", "adaptive surrogates", sees="outputs and labels"
)
LQ_CMA_ES = rival(
    "lq-cma-es",
    "lq-CMA-ES",
    sees="metric values",
    needs=(small_phi("its quadratic model needs d <= 32"),),
    compared=False,
)
TRUST_REGION_BO = rival(
    "trust-region-bo",
    "Bayesian optimisation, trust region",
    sees="metric values",
    short={"candidates": 50, "fit_steps": 4},
)

register(WEIGHTED_LOSS, PORTFOLIO, ADAPTIVE_SURROGATES, LQ_CMA_ES, TRUST_REGION_BO)


def unlisted(known: set[str]) -> list[Row]:
    """Return rows of registered rivals that have none of their own.

    Args:
        known: names of the rows there are.
    """
    names = (name for name in RIVALS if name not in known)
    return [rival(name, sees=RIVALS.get(name).sees) for name in names]
