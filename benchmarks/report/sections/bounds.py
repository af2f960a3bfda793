"""The section on runs under bounds: whether they are met on test, and at what price."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.report import stats
from benchmarks.report.cells import Cell, note_value
from benchmarks.report.columns import NOTHING, Column, Reading
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import text_table, to_markdown
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import DataError
from metricopt.metrics.constrained import ConstrainedMetric, met

BOUNDS = "## Bounds"
FEASIBLE = "feasible"
"""Note of a run: how probably its phi meets all bounds on other data."""
LEGEND = (
    "Columns whose runs improve a metric, the objective, within bounds on others. "
    "`met`: results that meet all bounds on the test split, of all results; a run that "
    "failed meets none. `objective`: mean ± sample std on test over all results, and "
    "over those that meet the bounds. `queries` and `s`: means over the runs; `s` are "
    "wall seconds, evaluation included. `said`: results of which the method said that "
    "the bounds are met on other data, of those where it says anything. `said and "
    "met`: those of them that meet the bounds on test. The first table is over all "
    "columns."
)
OVER_ALL = ("method", "results", "met", "said", "said and met")


@dataclass(frozen=True)
class Within:
    """The runs of a cell that improve an objective within bounds.

    Attributes:
        cell: the cell, whose column shows the objective.
        metric: what its runs improve.
        bounded: the metric of every bound, in order, among those that the results are
            judged by.
    """

    cell: Cell
    metric: ConstrainedMetric
    bounded: tuple[Unit, ...]

    @property
    def words(self) -> str:
        """What is improved within which bounds."""
        bounds = " and ".join(bound.name for bound in self.metric.bounds)
        return f"{self.metric.name}, {bounds}"


@dataclass(frozen=True)
class Result:
    """What came of one run or one of its searches.

    Attributes:
        objective: its value on test, native unit; None for a run that failed.
        bounded: value of the metric of every bound on test, native units; None where it
            is not known.
        is_met: whether all bounds are met on test.
        is_said: whether the method said so; None if it said nothing of bounds.
    """

    objective: float | None = None
    bounded: tuple[float | None, ...] = ()
    is_met: bool = False
    is_said: bool | None = None


def within_bounds(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section: a table over all columns, then one per block and column.

    Empty if no run has bounds.

    Raises:
        DataError: if results are not judged by the metric of a bound.
    """
    found = [runs for runs in map(_within, cells) if runs is not None]
    if not found:
        return []
    parts = [
        BOUNDS,
        LEGEND,
        to_markdown(text_table(_over_all(layout, found), OVER_ALL)),
    ]
    for block in layout.blocks:
        for column in layout.columns:
            place = (block, column)
            own = [r for r in found if (r.cell.block, r.cell.column) == place]
            if own:
                parts.append(f"### {block.label}, {column.label}: {own[0].words}")
                parts.append(
                    to_markdown(text_table([*map(_line, own)], _names(own[0])))
                )
    return parts


def _within(cell: Cell) -> Within | None:
    """Return the runs of a cell with their bounds; None if they have none."""
    first = cell.records[0].spec
    if first.metric == cell.column.metric:
        return None
    metric = metric_of(first.metric)
    if not isinstance(metric, ConstrainedMetric):
        return None
    judged = {metric_of(unit).name: unit for unit in first.also}
    for bound in metric.bounds:
        if bound.metric.name not in judged:
            raise DataError(
                f"runs of column {cell.column.name!r} have the bound {bound.name!r}, "
                f"so they must be judged by {bound.metric.name!r}, too; their spec "
                f"names {', '.join(judged) or 'no further metric'} in `also`"
            )
    bounded = tuple(judged[bound.metric.name] for bound in metric.bounds)
    if cell.column.metric in bounded:
        return None  # a column that shows a bounded metric beside the objective
    return Within(cell, metric, bounded)


def _results(runs: Within) -> list[Result]:
    """Return the results of all runs of a cell, one for each of their searches."""
    reading = Reading(runs.cell.column)
    found = []
    for record in runs.cell.records:
        if reading.finished(record):
            found += _of_run(record, runs)
        else:
            found.append(Result())
    return found


def _of_run(record: RunRecord, runs: Within) -> list[Result]:
    objectives = record.values("test", runs.cell.column.metric.label)
    bounded = [record.values("test", unit.label) for unit in runs.bounded]
    probability = note_value(record, FEASIBLE)
    # What a run of several searches notes is a mean, which says nothing of any of them.
    is_said = None
    if probability is not None and len(objectives) == 1:
        is_said = runs.metric.known.is_enough(probability)
    return [
        Result(objective, values, _is_met(runs.metric, values), is_said)
        for objective, *values in zip(objectives, *bounded, strict=True)
    ]


def _is_met(metric: ConstrainedMetric, bounded: Sequence[float | None]) -> bool:
    """Return whether values of the bounded metrics meet all bounds."""
    if None in bounded:
        return False
    excess = [
        bound.excess(torch.tensor(value, dtype=torch.float64))
        for bound, value in zip(metric.bounds, bounded, strict=True)
    ]
    return bool(met(torch.stack([torch.zeros_like(excess[0]), *excess])))


def _over_all(layout: TableLayout, found: Sequence[Within]) -> list[list[str]]:
    """Return a line for every row, over all columns."""
    lines = []
    for row in layout.rows:
        own = [r for runs in found if runs.cell.row == row for r in _results(runs)]
        if own:
            shares = (_percent(*counts) for counts in _counts(own))
            lines.append([row.label, str(len(own)), *shares])
    return lines


def _counts(results: Sequence[Result]) -> tuple[tuple[int, int], ...]:
    """Return how many of how many met the bounds, said so, and met them then."""
    told = [result for result in results if result.is_said is not None]
    said = [result for result in told if result.is_said]
    return (
        (sum(result.is_met for result in results), len(results)),
        (len(said), len(told)),
        (sum(result.is_met for result in said), len(said)),
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NOTHING


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else NOTHING


def _names(runs: Within) -> list[str]:
    """Return the names of the table of a column."""
    bounded = (_column(unit).heading for unit in dict.fromkeys(runs.bounded))
    objective = runs.cell.column
    arrow = objective.heading.removeprefix(objective.label)
    ends = [f"objective{arrow}", "where met", *bounded, "queries", "s"]
    return ["method", "met", *ends, "said", "said and met"]


def _line(runs: Within) -> list[str]:
    """Return the line of a row in the table of a column."""
    column, results = runs.cell.column, _results(runs)
    kept, said, proven = (_of(*counts) for counts in _counts(results))
    bounded = {
        unit: [result.bounded[place] for result in results if result.bounded]
        for place, unit in enumerate(runs.bounded)
    }
    return [
        runs.cell.row.label,
        kept,
        _mean(column, [result.objective for result in results]),
        _mean(column, [result.objective for result in results if result.is_met]),
        *(_mean(_column(unit), values) for unit, values in bounded.items()),
        *_spent(runs.cell),
        said,
        proven,
    ]


def _column(unit: Unit) -> Column:
    """Return how values of a bounded metric are shown."""
    return Column(unit.label, unit.label, unit)


def _mean(column: Column, values: Sequence[float | None]) -> str:
    return column.summary([value for value in values if value is not None])


def _spent(cell: Cell) -> list[str]:
    """Return mean queries and seconds of the finished runs."""
    queries = stats.mean([record.queries for record in cell.finished])
    seconds = stats.mean([record.total_seconds for record in cell.finished])
    if queries is None or seconds is None:
        return [NOTHING, NOTHING]
    return [f"{queries:,.0f}", f"{seconds:,.1f}"]
