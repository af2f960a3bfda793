"""What methods reach within budgets of metric queries, and how many they need.

The least number of queries for the test cost CMA-ES has at 500 is read from the mean
curve on test, which rises and falls: it tells methods apart, and is not a rule when to
stop. CMA-ES is itself an entry here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from benchmarks.report import stats
from benchmarks.report.columns import NOTHING, Column, Reading
from benchmarks.report.curves import (
    Curve,
    at_budget,
    of_entry,
    of_place,
    of_row,
    query_curve,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.render import section, text_table, to_markdown
from benchmarks.runs.record import RunRecord

REFERENCE_ROW, REFERENCE_QUERIES = "cma-es", 500

EQUAL_QUERIES = "## At equal queries"
EQUAL_LEGEND = (
    "What a method would return at each budget of metric queries, meta-training "
    "included. Cells: mean ± sample std on test / mean on observe; `Spread` above says "
    "of what."
)
QUERIES_TO_REACH = "## Queries for the test cost of CMA-ES"
REACH_LEGEND = (
    "Cells: the least metric queries, meta-training included, at which the mean of a "
    "method on test is as good as that of CMA-ES at 500, or at all it made if they "
    "were fewer. `·`: never; empty: not run. Columns: those in which CMA-ES is then "
    "better than the untouched network by more than the margin of `=`. Means are over "
    "the replicates that CMA-ES has. `times fewer`: geometric mean of the queries of "
    "CMA-ES over those of the method, 0 counting as 1: first over the columns it "
    "reached, then over all it was run in. In the latter a column it never reached "
    "counts with all queries it made there, and at most as 1, which is more than its "
    "due. A mean on test rises and falls, and its first good point flatters every "
    "method; the line of CMA-ES itself shows how much."
)


def equal_queries(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return what entries reach within each budget, a table per block and column."""
    parts = []
    if not layout.query_budgets:
        return []
    names = ["method", *(f"{q:,} queries" for q in layout.query_budgets)]
    for block in layout.blocks:
        for column in layout.columns:
            place = (block.name, column.source)
            own = [r for r in records if (r.spec.block, r.spec.column) == place]
            lines = _at_budgets(layout, own, layout.reading(column))
            if lines:
                table = to_markdown(text_table(lines, names))
                parts += [f"### {block.label}, {column.heading}", table]
    return [EQUAL_QUERIES, EQUAL_LEGEND, *parts] if parts else []


def _at_budgets(
    layout: TableLayout, records: Sequence[RunRecord], reading: Reading
) -> list[list[str]]:
    """Return `mean±std on test / mean on observe` at every budget, a line per entry."""
    lines = []
    for entry, label in layout.compared_entries.items():
        texts = []
        for queries in layout.query_budgets:
            test = at_budget(records, entry, queries, reading)
            seen = stats.mean(at_budget(records, entry, queries, reading, "observe"))
            text = reading.column.summary(test)
            if test and seen is not None:
                text += f" / {reading.column.format(seen)}"
            texts.append(text)
        if any(text != NOTHING for text in texts):
            lines.append([label, *texts])
    return lines


@dataclass(frozen=True)
class Effort:
    """What an entry needed to reach a goal.

    Attributes:
        needed: least queries at which its mean on test is as good; None if it never is.
        spent: most queries of one of its runs.
    """

    needed: float | None
    spent: int


@dataclass(frozen=True)
class Goal:
    """A column in which CMA-ES gains over the untouched network.

    Attributes:
        block, column: its place.
        value: mean of CMA-ES on test after `queries`, native unit.
        queries: 500, or all queries CMA-ES made if they were fewer.
        efforts: what each entry that was run there needed, by name.
    """

    block: Block
    column: Column
    value: float
    queries: int
    efforts: Mapping[str, Effort]

    def counted(self, entry: str) -> float:
        """Return the queries that an entry which was run there counts with.

        0 queries count as 1. An entry that never reached the goal counts with all it
        spent, or with the queries of CMA-ES if these are more.
        """
        effort = self.efforts[entry]
        if effort.needed is None:
            return max(self.queries, effort.spent)
        return max(effort.needed, 1.0)

    def times_fewer(self, entry: str) -> float:
        """Return the queries of CMA-ES over those that an entry counts with."""
        return self.queries / self.counted(entry)


def goals(layout: TableLayout, records: Sequence[RunRecord]) -> list[Goal]:
    """Return the columns with something to gain, by block.

    None in a layout that compares no budgets, or has no untouched row. All means are
    over the replicates that CMA-ES has, so that all entries face the same problems.
    """
    if not layout.query_budgets or layout.untouched_row is None:
        return []
    layout = layout.fitted(records)
    places = [(block, column) for block in layout.blocks for column in layout.columns]
    found = (_goal(layout, records, *place) for place in places)
    return [goal for goal in found if goal is not None]


def _goal(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, column: Column
) -> Goal | None:
    """Return the goal of a column, None if CMA-ES gains too little or is not there."""
    own, reading = of_place(records, block, column), layout.reading(column)
    searches = of_entry(own, REFERENCE_ROW, reading)
    replicates = {record.spec.replicate for record in searches}
    own = [record for record in own if record.spec.replicate in replicates]
    line = query_curve(own, REFERENCE_ROW, reading)
    value = None if line is None else _at(line, REFERENCE_QUERIES)
    before = stats.mean(reading.all_finals(of_row(own, layout.untouched_row or "")))
    if value is None or before is None:
        return None
    if column.sign * (before - value) <= column.equal_within:
        return None
    curves = {
        entry: query_curve(own, entry, reading) for entry in layout.compared_entries
    }
    efforts = {
        entry: Effort(_needed(curve, value, column), _spent(own, entry, reading))
        for entry, curve in curves.items()
        if curve is not None
    }
    queries = min(REFERENCE_QUERIES, _spent(own, REFERENCE_ROW, reading))
    return Goal(block, column, value, queries, efforts)


def _at(line: Curve, queries: int) -> float | None:
    """Return the mean at the last point of at most so many queries."""
    points = zip(line.x, line.mean, strict=True)
    return next((mean for x, mean in reversed([*points]) if x <= queries), None)


def _needed(line: Curve, value: float, column: Column) -> float | None:
    """Return the first point at which the mean is as good as a value."""
    points = zip(line.x, line.mean, strict=True)
    worst = column.sign * value + stats.ROUNDING
    return next((x for x, mean in points if column.sign * mean <= worst), None)


def _spent(records: Sequence[RunRecord], entry: str, reading: Reading) -> int:
    return max(record.queries for record in of_entry(records, entry, reading))


def queries_to_reach(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section with one line per entry and one column per goal."""
    found, lines = goals(layout, records), []
    several = len({goal.block for goal in found}) > 1
    compared = layout.compared_entries
    told = any(layout.sees[label] for label in compared.values())
    for entry, label in compared.items():
        own = [goal for goal in found if entry in goal.efforts]
        if own:
            seen = [layout.sees[label]] * told
            texts = (_needed_text(goal, entry) for goal in found)
            lines.append([label, *seen, *texts, *_over(own, entry)])
    headings = (
        " ".join([goal.block.name] * several + [goal.column.heading]) for goal in found
    )
    ends = ["reached", "times fewer, reached", "times fewer, all"]
    names = ["method", *["sees"] * told, *headings, *ends]
    return section(QUERIES_TO_REACH, REACH_LEGEND, lines, names)


def _needed_text(goal: Goal, entry: str) -> str:
    if entry not in goal.efforts:
        return ""
    needed = goal.efforts[entry].needed
    return NOTHING if needed is None else f"{needed:,.0f}"


def _over(tried: Sequence[Goal], entry: str) -> list[str]:
    """Return how an entry does over goals: reached, times fewer there and in all."""
    reached = [goal for goal in tried if goal.efforts[entry].needed is not None]
    means = (
        f"{geometric_mean([goal.times_fewer(entry) for goal in own]):.2f}"
        if own
        else NOTHING
        for own in (reached, tried)
    )
    return [f"{len(reached)} of {len(tried)}", *means]
