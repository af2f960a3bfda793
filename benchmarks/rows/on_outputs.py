"""MetricOpt on outputs, ours: with fewer and more queries, and parts left out."""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    UNTOUCHED,
    Fill,
    Row,
    Run,
    family,
    only,
    register,
    small_phi,
)
from benchmarks.rows.controls import method
from benchmarks.runs.spec import Unit

QUERIES = 15
SEVERAL_BUDGETS = "several budgets are compared where d is small and runs are many"
MARKS = {"marks": [3, 6]}
SHORT = {
    "search": {"steps": 5},
    "portfolio": MARKS,
    "cross_fitting": {"steps": 20, "rungs": [5, 10], "every": 5, "samples": 20},
}
"""Settings of tier smoke."""


def ours(queries: int = QUERIES, *, offsets: bool = True, **settings: Any) -> Fill:
    """Return what MetricOpt on outputs does, with settings of the method."""

    def run(problem: Problem, metric: Unit) -> Run:
        arm = method("metricopt-outputs", **settings)
        return Run(arm, queries, offsets=offsets)

    return run


def _by_seeds(run: Fill) -> Fill:
    """Return the same, repeated as often as a problem's size has seeds."""

    def repeated(problem: Problem, metric: Unit) -> Run:
        found = run(problem, metric)
        return Run(found.arm, found.queries, problem.size.seeds, offsets=found.offsets)

    return repeated


_row = family("on outputs", sees="outputs and labels", base=(UNTOUCHED,), short=SHORT)
OURS = _row(
    "metricopt-outputs",
    "MetricOpt on outputs (ours)",
    _by_seeds(ours()),
    is_primary=True,
    is_brief=True,
    is_pictured=True,
)


def with_queries(name: str, queries: int, **more: Any) -> Row:
    """Return MetricOpt on outputs with another budget, by the name of its row."""
    return _row(
        name,
        f"MetricOpt on outputs, {queries} queries",
        ours(queries),
        variant_of=OURS.name,
        budget=queries,
        **more,
    )


WITH_10_QUERIES = with_queries(
    "metricopt-outputs-q10", 10, is_primary=True, needs=(small_phi(SEVERAL_BUDGETS),)
)
WITH_50_QUERIES = with_queries(
    "metricopt-outputs-q50", 50, needs=(small_phi(SEVERAL_BUDGETS),)
)
WITHOUT_OFFSETS = _row(
    "metricopt-outputs-adapter",
    "MetricOpt on outputs, no offsets",
    ours(offsets=False),
    note="its adapter has no output offsets, like that of all rows above the rivals",
    compared=False,
)
UNSORTED = _row(
    "metricopt-outputs-unsorted",
    "MetricOpt on outputs, no sorted recalls",
    ours(left_out=["decisions: sorted"]),
    note="without the statistics in which the worst class is linear",
    needs=(only("worst-class-error"),),
    compared=False,
)

register(OURS, WITH_10_QUERIES, WITH_50_QUERIES, WITHOUT_OFFSETS, UNSORTED)
