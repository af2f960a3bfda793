"""Traces of records as curves with a spread: for tables at a budget and figures."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.report import stats
from benchmarks.report.columns import Column, Reading, Split
from benchmarks.report.layout import Block
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import sort_records

Axis = Literal["step", "queries"]


@dataclass(frozen=True)
class Curve:
    """A mean over what counts as one value, with its spread; see `Reading`.

    Attributes:
        x: steps or queries, increasing, shape [n].
        mean: native metric, shape [n].
        std: sample standard deviation, 0 for a single value, shape [n].
        geometric: whether means are geometric ones, and deviations those of logarithms.
    """

    x: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    geometric: bool = False

    @classmethod
    def of(
        cls, values: Mapping[float, Sequence[float]], *, geometric: bool = False
    ) -> "Curve":
        """Return the curve of some values, one or more at every x in order.

        Args:
            values: by x; positive for a geometric mean.
            geometric: which mean is taken.
        """
        if geometric:
            logs = {x: [math.log(value) for value in own] for x, own in values.items()}
            line = cls.of(logs)
            return replace(line, mean=tuple(map(math.exp, line.mean)), geometric=True)
        means = tuple(sum(own) / len(own) for own in values.values())
        stds = tuple(stats.sample_std(own) or 0.0 for own in values.values())
        return cls(tuple(values), means, stds)

    def at(self, places: Sequence[int]) -> "Curve":
        """Return some of the points, by their numbers."""
        x, mean, std = (
            tuple(part[i] for i in places) for part in (self.x, self.mean, self.std)
        )
        return replace(self, x=x, mean=mean, std=std)

    @property
    def band(self) -> tuple[list[float], list[float]]:
        """One deviation below and above the mean."""

        def away(sign: int) -> list[float]:
            pairs = zip(self.mean, self.std, strict=True)
            if self.geometric:
                return [mean * math.exp(sign * std) for mean, std in pairs]
            return [mean + sign * std for mean, std in pairs]

        return away(-1), away(1)


def of_place(
    records: Sequence[RunRecord], block: Block, column: Column
) -> list[RunRecord]:
    """Return the finished records of a block and column."""
    place, reading = (block.name, column.source), Reading(column)
    return [
        record
        for record in records
        if (record.spec.block, record.spec.column) == place and reading.finished(record)
    ]


def of_row(records: Sequence[RunRecord], row: str) -> list[RunRecord]:
    """Return the records of a row by replicate."""
    return sort_records(record for record in records if record.spec.row == row)


def of_entry(
    records: Sequence[RunRecord], entry: str, reading: Reading
) -> list[RunRecord]:
    """Return the records of an entry, its variants with other budgets included."""
    return [record for record in records if reading.entry(record) == entry]


def without_budget(records: Sequence[RunRecord], reading: Reading) -> list[RunRecord]:
    """Return the records of rows that are no variant with another budget."""
    return [record for record in records if reading.budget(record) is None]


def values_at(
    record: RunRecord, split: Split, queries: int, reading: Reading
) -> tuple[float, ...]:
    """Return what a run had reached when it had made at most so many queries.

    Args:
        record: a finished run.
        split: which values.
        queries: the budget.
        reading: which metric, and what counts as one value.

    Returns:
        The final values if they cost no more, else those at the last such point of its
        trace. A variant with another budget has values at that budget only: its final
        ones. Empty if there is none.
    """
    budget = reading.budget(record)
    if budget in (None, queries) and record.queries <= queries:
        return reading.finals(record, split)
    if budget is not None:
        return ()
    fitting = [point for point in record.trace if point.queries <= queries]
    return reading.passed(record, fitting[-1], split) if fitting else ()


def at_budget(
    records: Sequence[RunRecord],
    entry: str,
    queries: int,
    reading: Reading,
    split: Split = "test",
) -> list[float]:
    """Return the values of all finished runs of an entry at a budget of queries.

    If there are variants with that budget, only they count: they were tuned for it.

    Args:
        records: runs of one block and column.
        entry: name of the entry.
        queries: the budget.
        reading: which metric, and what counts as one value.
        split: which values.
    """
    own = of_entry(records, entry, reading)
    runs = [record for record in own if reading.finished(record)]
    tuned = [record for record in runs if reading.budget(record) == queries]
    found = (values_at(record, split, queries, reading) for record in tuned or runs)
    return [value for values in found for value in values]


def curve(
    records: Sequence[RunRecord], reading: Reading, *, axis: Axis, split: Split = "test"
) -> Curve | None:
    """Average the traces of one row over what counts as one value.

    Each holds its last value until its next point. The curve starts where every one has
    a value; over queries it ends where all queries are spent.

    Args:
        records: finished runs of one row, one per replicate.
        reading: which metric, and what counts as one value.
        axis: what is on the x axis.
        split: which values.

    Returns:
        The curve; None if it would have fewer than two points.
    """
    lines = [_lines(record, reading, axis, split) for record in records]
    if not all(lines):
        return None
    traces = [points for of_run in lines for points in of_run]
    if not traces:
        return None
    start = max(points[0][0] for points in traces)
    grid = sorted({x for points in traces for x, _ in points if x >= start})
    if len(grid) < 2:
        return None
    return Curve.of({x: [_held(points, x) for points in traces] for x in grid})


def budget_curve(
    records: Sequence[RunRecord], entry: str, reading: Reading, split: Split = "test"
) -> Curve | None:
    """Join the final values of an entry's variants to one curve over their budgets.

    The row without a budget, if there is one, stands at the queries it spent. None
    below two points, or for an entry without variants.
    """
    runs = of_entry(records, entry, reading)
    budgets = [reading.budget(record) for record in runs]
    if not any(budgets):
        return None
    groups: dict[float, list[float]] = {}
    for record, budget in zip(runs, budgets, strict=True):
        values = reading.finals(record, split)
        if values:
            groups.setdefault(budget or record.queries, []).extend(values)
    return Curve.of(dict(sorted(groups.items()))) if len(groups) > 1 else None


def query_curve(
    records: Sequence[RunRecord], entry: str, reading: Reading, split: Split = "test"
) -> Curve | None:
    """Return what an entry reaches over queries, from what its records know of it.

    These are its variants with other budgets, else its traces, else its end alone, as a
    curve of one point. None if there are no values.

    Args:
        records: finished runs of one block and column.
        entry: name of the entry.
        reading: which metric, and what counts as one value.
        split: which values.
    """
    runs = of_entry(records, entry, reading)
    plain = without_budget(runs, reading)
    return (
        budget_curve(runs, entry, reading, split)
        or curve(plain, reading, axis="queries", split=split)
        or _end(plain, reading, split)
    )


def _end(records: Sequence[RunRecord], reading: Reading, split: Split) -> Curve | None:
    """Return the final values as a curve of one point, None if there are none."""
    values = reading.all_finals(records, split)
    queries = stats.mean([record.queries for record in records])
    return None if queries is None or not values else Curve.of({queries: values})


def _lines(
    record: RunRecord, reading: Reading, axis: Axis, split: Split
) -> list[list[tuple[float, float]]]:
    """Return the points (x, value) of every value of a run, by increasing x.

    If several points of the trace have one x, the last counts.
    """
    found: dict[float, tuple[float, ...]] = {}
    for point in record.trace:
        values = reading.passed(record, point, split)
        if values:
            found[float(point.step if axis == "step" else point.queries)] = values
    # A search whose last improvement came early has spent the rest of its queries too.
    final = reading.finals(record, split)
    if axis == "queries" and found and final and record.queries > max(found):
        found[float(record.queries)] = final
    points = sorted(found.items())
    series = zip(*(values for _, values in points), strict=True)
    return [[(x, v) for (x, _), v in zip(points, s, strict=True)] for s in series]


def _held(points: Sequence[tuple[float, float]], x: float) -> float:
    index = bisect_right([position for position, _ in points], x) - 1
    return points[index][1]
