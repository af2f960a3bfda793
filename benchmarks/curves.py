"""Traces of records as curves over replicates: for tables at a budget and figures."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import stats
from benchmarks.cells import replicate_mean
from benchmarks.layout import split_budget
from benchmarks.records import RunRecord


@dataclass(frozen=True)
class Curve:
    """A mean over replicates with its spread.

    Attributes:
        x: steps or queries, increasing, shape [n].
        mean: native metric, shape [n].
        std: sample standard deviation, 0 for a single replicate, shape [n].
    """

    x: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def of_arm(records: Sequence[RunRecord], arm: str) -> list[RunRecord]:
    """Return the finished records of an arm, its rows `<arm>-q<N>` included."""
    return [
        record
        for record in records
        if record.finished and split_budget(record.spec.row)[0] == arm
    ]


def value_at(record: RunRecord, split: str, queries: int) -> float | None:
    """Return what a run had reached when it had made at most so many queries.

    Args:
        record: a finished run.
        split: `observe` or `test`.
        queries: the budget.

    Returns:
        Mean over meta-tests at the last such entry of its trace; without a trace the
        final value, if it cost no more. A row `<arm>-q<N>` stands for budget N alone,
        by its final value. None if there is none.
    """
    budget = split_budget(record.spec.row)[1]
    if budget is not None or not record.trace:
        fits = budget in (None, queries) and record.queries <= queries
        return replicate_mean(getattr(record, split)) if fits else None
    fitting = [entry for entry in record.trace if entry["queries"] <= queries]
    return replicate_mean(fitting[-1][split]) if fitting else None


def at_budget(
    records: Sequence[RunRecord], arm: str, split: str, queries: int
) -> list[float]:
    """Return the values of all replicates of an arm at a budget of queries.

    Where rows `<arm>-q<N>` have that budget they alone count: they were tuned for it.
    """
    runs = of_arm(records, arm)
    tuned = [r for r in runs if split_budget(r.spec.row)[1] == queries]
    found = (value_at(record, split, queries) for record in tuned or runs)
    return [value for value in found if value is not None]


def curve(records: Sequence[RunRecord], *, axis: str, split: str) -> Curve | None:
    """Average the traces of one row over its replicates.

    A replicate holds its last value until its next entry; the curve starts where every
    replicate has one.

    Args:
        records: finished runs of one row, one per replicate.
        axis: `step` or `queries`.
        split: `observe` or `test`.

    Returns:
        The curve; None if it would have fewer than two points.
    """
    traces = [_points(record, axis, split) for record in records]
    if not traces or not all(traces):
        return None
    start = max(points[0][0] for points in traces)
    grid = sorted({x for points in traces for x, _ in points if x >= start})
    if len(grid) < 2:
        return None
    columns = [[_held(points, x) for points in traces] for x in grid]
    means = tuple(sum(column) / len(column) for column in columns)
    stds = tuple(stats.sample_std(column) or 0.0 for column in columns)
    return Curve(tuple(grid), means, stds)


def budget_curve(records: Sequence[RunRecord], arm: str, split: str) -> Curve | None:
    """Join the final values of the rows `<arm>-q<N>` of an arm to one curve over N.

    The row without a budget, where there is one, adds the queries it spent. None below
    two points, or for an arm without such rows.
    """
    runs = of_arm(records, arm)
    budgets = [split_budget(record.spec.row)[1] for record in runs]
    if not any(budgets):
        return None
    groups: dict[int, list[float]] = {}
    for record, budget in zip(runs, budgets, strict=True):
        value = replicate_mean(getattr(record, split))
        if value is not None:
            groups.setdefault(budget or record.queries, []).append(value)
    if len(groups) < 2:
        return None
    grid = tuple(sorted(groups))
    means = tuple(sum(groups[x]) / len(groups[x]) for x in grid)
    return Curve(grid, means, tuple(stats.sample_std(groups[x]) or 0.0 for x in grid))


def _points(record: RunRecord, axis: str, split: str) -> list[tuple[float, float]]:
    """Return (x, value) by increasing x; of several entries at one x the last."""
    found = {}
    for entry in record.trace:
        value = replicate_mean(entry[split])
        if value is not None:
            found[float(entry[axis])] = value
    return sorted(found.items())


def _held(points: Sequence[tuple[float, float]], x: float) -> float:
    index = bisect_right([position for position, _ in points], x) - 1
    return points[index][1]
