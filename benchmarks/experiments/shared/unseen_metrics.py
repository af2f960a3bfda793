"""Black boxes that no statistic was made for, and the rows that meet them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.plans import Plan
from benchmarks.experiments.shared.problems import NamedProblem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row
from benchmarks.runs.spec import Unit


@dataclass(frozen=True)
class BlackBox:
    """A metric that no statistic was made for.

    Attributes:
        name: as columns are named.
        label: as printed.
        unit: the metric.
    """

    name: str
    label: str
    unit: Unit


def _box(name: str, label: str) -> BlackBox:
    return BlackBox(name, label, Unit(name))


def _random_cost(seed: int) -> BlackBox:
    unit = Unit("random-cost", {"seed": seed})
    return BlackBox(f"random-cost-{seed}", f"random cost {seed}", unit)


RANDOM_COSTS = tuple(map(_random_cost, range(5)))
FURTHER_COSTS = RANDOM_COSTS[1:]
BLACK_BOXES = (
    _box("matthews", "Matthews' correlation"),
    _box("kappa", "Cohen's kappa"),
    _box("f2", "F2"),
    *RANDOM_COSTS,
    _box("two-worst-recalls", "mean of the two worst recalls"),
    _box("calibration-error", "expected calibration error"),
    _box("log-loss", "log loss"),
    _box("reciprocal-rank", "mean reciprocal rank"),
    _box("sure-accuracy", "accuracy above confidence 0.8"),
)
OF_MANY_CLASSES = ("two-worst-recalls", "reciprocal-rank")
PATIENT_BOXES = (
    "two-worst-recalls",
    "calibration-error",
    "log-loss",
    "reciprocal-rank",
    "sure-accuracy",
)
"""No smooth functions of the confusion matrix, which few queries identify."""
OF_SMOKE = ("matthews", "random-cost-0", "log-loss")
SMOKE_QUERIES = 20
"""Of searches at tier smoke."""

PATIENT = f"{outputs.OURS}-q{outputs.MORE}"
ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)"),
    *outputs.search_rows("cross-entropy"),
    *(row for row in outputs.rows(outputs.OURS) if row.name in (outputs.OURS, PATIENT)),
)
"""All of them search an adapter with output offsets."""
QUERY_ARMS, BUDGETS = (*arms.SEARCHES, outputs.OURS), (15, 50, 150)

CAPTION = "All rows search the same adapter. Every query counts."
NOTES = (
    "Look at `Identified` first. If a metric is not identified, nothing predicts it: "
    "then only a phi that was queried can be handed over, and only if its gain is "
    "seen on parts of the observe split, too.",
    "Random cost: the cost of each kind of mistake is drawn from [0, 1]. Columns 0 to "
    "4 are five draws.",
    "Log loss is cut at 10 nats, and equal is what differs by less than .02 nats.",
    f"MetricOpt on outputs with {outputs.MORE} queries stands in `At equal queries` "
    "and in `Identified`.",
)


def black_boxes(tier: str, *, classes: int) -> list[BlackBox]:
    """Return the metrics of a tier that make sense for so many classes."""
    return [
        box
        for box in BLACK_BOXES
        if (tier != "smoke" or box.name in OF_SMOKE)
        and (classes > 2 or box.name not in OF_MANY_CLASSES)
    ]


def columns(
    problem: NamedProblem[Any], boxes: Sequence[BlackBox]
) -> tuple[Column, ...]:
    """Return the columns of a problem, one per black box."""
    ratio = problem.problem.test_per_train
    return tuple(
        Column(f"{problem.name}/{box.name}", box.label, box.unit, test_per_train=ratio)
        for box in boxes
    )


def plans(tier: str, tests: int = 1, **settings: Any) -> dict[str, Plan]:
    """Return how the rows of a column are filled.

    Args:
        tier: decides the queries of searches; tier smoke has no patient row.
        tests: repetitions within a run.
        **settings: of the searches.
    """
    queries = SMOKE_QUERIES if tier == "smoke" else outputs.RIVAL_QUERIES
    found = arms.searches(arms.Size(), queries, **settings)
    found[outputs.OURS] = outputs.ours()
    if tier != "smoke":
        found[PATIENT] = outputs.ours(outputs.MORE)
    return outputs.beside_offsets(found, tests)
