"""Black boxes that no statistic was made for, and the rows that meet them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.problems.problem import Problem
from benchmarks.report.columns import Column
from benchmarks.rows.contract import Row
from benchmarks.rows.controls import CROSS_ENTROPY, SEARCHES
from benchmarks.rows.on_outputs import OURS, with_queries
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


RANDOM_COSTS = tuple(
    BlackBox(f"random-cost-{n}", f"random cost {n}", Unit("random-cost", {"seed": n}))
    for n in range(5)
)
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
HARD_TO_IDENTIFY = (
    "two-worst-recalls",
    "calibration-error",
    "log-loss",
    "reciprocal-rank",
    "sure-accuracy",
)
"""Metrics that are no smooth functions of the confusion matrix."""
OF_SMOKE = ("matthews", "random-cost-0", "log-loss")
QUERIES = {"paper": 150, "local": 150, "smoke": 20}
"""Queries of searches, by tier."""

PATIENT = with_queries("metricopt-outputs-q50", 50).running(meta_tests=1)
"""MetricOpt on outputs with the queries that hard metrics take."""
BUDGETS = (15, 50, 150)
ASKS = "this table asks which metrics are identified, and what searches reach"

CAPTION = "All rows search the same adapter. Every query counts."
NOTES = (
    "Look at `Identified` first. If a metric is not identified, nothing predicts it: "
    "then only a phi that was queried can be handed over, and only if its gain is "
    "seen on parts of the observe split, too.",
    "Random cost: the cost of each kind of mistake is drawn from [0, 1]. Columns 0 to "
    "4 are five draws.",
    "Log loss is cut at 10 nats, and equal is what differs by less than .02 nats.",
    "MetricOpt on outputs with 50 queries stands in `At equal queries` and in "
    "`Identified`.",
)


def rows(tier: str) -> tuple[Row, ...]:
    """Return the rows of a tier; tier smoke has no patient row."""
    searches = tuple(replace(row, base=("cross-entropy",)) for row in SEARCHES)
    found = (CROSS_ENTROPY, *searches, OURS)
    return found if tier == "smoke" else (*found, PATIENT)


def black_boxes(tier: str, *, classes: int) -> list[BlackBox]:
    """Return the metrics of a tier that make sense for so many classes."""
    return [
        box
        for box in BLACK_BOXES
        if (tier != "smoke" or box.name in OF_SMOKE)
        and (classes > 2 or box.name not in OF_MANY_CLASSES)
    ]


def columns(problem: Problem, boxes: Sequence[BlackBox]) -> tuple[Column, ...]:
    """Return the columns of a problem, one per black box."""
    ratio = problem.test_per_train
    return tuple(
        Column(f"{problem.name}/{box.name}", box.label, box.unit, test_per_train=ratio)
        for box in boxes
    )
