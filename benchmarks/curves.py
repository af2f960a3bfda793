"""Traces of records as curves with a spread: for tables at a budget and figures."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import stats
from benchmarks.cells import unit_values
from benchmarks.layout import REPLICATE, Block, Column, split_budget
from benchmarks.records import RunRecord, sort_records


@dataclass(frozen=True)
class Curve:
    """A mean over replicates or meta-tests with its spread.

    Attributes:
        x: steps or queries, increasing, shape [n].
        mean: native metric, shape [n].
        std: sample standard deviation, 0 for a single value, shape [n].
    """

    x: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def of_place(
    records: Sequence[RunRecord], block: Block, column: Column
) -> list[RunRecord]:
    """Return the finished records of a block and column."""
    place = (block.name, column.name)
    return [
        record
        for record in records
        if record.finished and (record.spec.block, record.spec.column) == place
    ]


def of_row(records: Sequence[RunRecord], row: str) -> list[RunRecord]:
    """Return the records of a row by replicate."""
    return sort_records(record for record in records if record.spec.row == row)


def of_arm(records: Sequence[RunRecord], arm: str) -> list[RunRecord]:
    """Return the finished records of an arm, its rows `<arm>-q<N>` included."""
    return [
        record
        for record in records
        if record.finished and split_budget(record.spec.row)[0] == arm
    ]


def values_at(
    record: RunRecord, split: str, queries: int, unit: str
) -> tuple[float, ...]:
    """Return what a run had reached when it had made at most so many queries.

    Args:
        record: a finished run.
        split: `observe` or `test`.
        queries: the budget.
        unit: see `cells.unit_values`.

    Returns:
        The final values if they cost no more, else those at the last such entry of its
        trace. A row `<arm>-q<N>` stands for budget N alone, by its final values. Empty
        if there is none.
    """
    budget = split_budget(record.spec.row)[1]
    if budget in (None, queries) and record.queries <= queries:
        return unit_values(getattr(record, split), unit)
    if budget is not None:
        return ()
    fitting = [entry for entry in record.trace if entry["queries"] <= queries]
    return unit_values(fitting[-1][split], unit) if fitting else ()


def finals(records: Sequence[RunRecord], split: str, unit: str) -> list[float]:
    """Return all final values of some runs, see `cells.unit_values`."""
    return [v for record in records for v in unit_values(getattr(record, split), unit)]


def at_budget(
    records: Sequence[RunRecord],
    arm: str,
    split: str,
    queries: int,
    unit: str = REPLICATE,
) -> list[float]:
    """Return the values of all runs of an arm at a budget of queries.

    Where rows `<arm>-q<N>` have that budget they alone count: they were tuned for it.
    """
    runs = of_arm(records, arm)
    tuned = [r for r in runs if split_budget(r.spec.row)[1] == queries]
    found = (values_at(record, split, queries, unit) for record in tuned or runs)
    return [value for values in found for value in values]


def curve(
    records: Sequence[RunRecord], *, axis: str, split: str, unit: str
) -> Curve | None:
    """Average the traces of one row over its replicates or meta-tests.

    Each holds its last value until its next entry; the curve starts where every one has
    a value. Over queries it ends where all queries are spent.

    Args:
        records: finished runs of one row, one per replicate.
        axis: `step` or `queries`.
        split: `observe` or `test`.
        unit: see `cells.unit_values`.

    Returns:
        The curve; None if it would have fewer than two points.
    """
    lines = [_lines(record, axis, split, unit) for record in records]
    if not all(lines):
        return None
    traces = [points for of_run in lines for points in of_run]
    if not traces:
        return None
    start = max(points[0][0] for points in traces)
    grid = sorted({x for points in traces for x, _ in points if x >= start})
    if len(grid) < 2:
        return None
    columns = [[_held(points, x) for points in traces] for x in grid]
    means = tuple(sum(column) / len(column) for column in columns)
    stds = tuple(stats.sample_std(column) or 0.0 for column in columns)
    return Curve(tuple(grid), means, stds)


def budget_curve(
    records: Sequence[RunRecord], arm: str, split: str, unit: str
) -> Curve | None:
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
        values = unit_values(getattr(record, split), unit)
        if values:
            groups.setdefault(budget or record.queries, []).extend(values)
    if len(groups) < 2:
        return None
    grid = tuple(sorted(groups))
    means = tuple(sum(groups[x]) / len(groups[x]) for x in grid)
    return Curve(grid, means, tuple(stats.sample_std(groups[x]) or 0.0 for x in grid))


def _lines(
    record: RunRecord, axis: str, split: str, unit: str
) -> list[list[tuple[float, float]]]:
    """Return the points (x, value) of every value of a run, by increasing x.

    Of several entries at one x the last counts.
    """
    found: dict[float, tuple[float, ...]] = {}
    for entry in record.trace:
        values = unit_values(entry[split], unit)
        if values:
            found[float(entry[axis])] = values
    # A search whose last improvement came early has spent the rest of its queries too.
    final = unit_values(getattr(record, split), unit)
    if axis == "queries" and found and final and record.queries > max(found):
        found[float(record.queries)] = final
    points = sorted(found.items())
    series = zip(*(values for _, values in points), strict=True)
    return [[(x, v) for (x, _), v in zip(points, s, strict=True)] for s in series]


def _held(points: Sequence[tuple[float, float]], x: float) -> float:
    index = bisect_right([position for position, _ in points], x) - 1
    return points[index][1]
