"""The section on how rows do over all columns of some blocks, at their own budgets."""

from collections.abc import Sequence

from benchmarks.report.fair_summary import (
    HEADINGS,
    Place,
    Standing,
    matches,
    places,
    standings,
)
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.runs.record import RunRecord

OVER_COLUMNS = "## Over all columns"
LEGEND = (
    "`regret`: mean distance to the best row of a column, as a share of the range of "
    "its metric. `mean`, `median`, `least`: the share of the best row's gain that a "
    "row reaches, over the columns in which the best gains at least .003; below 0 is "
    "harm. `harm`: the most that a column is worse than the untouched row. `queries`: "
    "the most in any run. `lost`: runs that end more than .001 worse than the "
    "untouched row of their replicate, of all runs. The best row of a column is partly "
    "lucky."
)
LOSS = 0.001
ALL = 10**9
"""More queries than any run makes."""


def over_columns(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section; empty if the layout sums nothing up."""
    lines = standing_lines(layout, records)
    return section(OVER_COLUMNS, LEGEND, lines, ["blocks", *HEADINGS, "lost"])


def standing_lines(
    layout: TableLayout, records: Sequence[RunRecord]
) -> list[list[str]]:
    """Return a line for every group of blocks and row, the best first."""
    return [
        [name, *standing.texts, _lost(own, standing.row.name)]
        for name, own in _places(layout, records).items()
        for standing in standings(matches(own, ALL))
    ]


def standings_by_group(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[str, list[Standing]]:
    """Return the standings of every group of blocks that has records."""
    return {
        name: standings(matches(own, ALL))
        for name, own in _places(layout, records).items()
    }


def _places(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[str, list[Place]]:
    """Return the columns of every group of blocks that has records."""
    grouped = {}
    for name, blocks in layout.summed.items():
        found = []
        for block in blocks:
            ran = {r.spec.column for r in records if r.spec.block == block}
            columns = [c.name for c in layout.columns if c.source in ran]
            found += places(layout, records, block, columns)
        if found:
            grouped[name] = found
    return grouped


def _lost(found: Sequence[Place], row: str) -> str:
    """Return how many runs of a row are worse than untouched, of how many."""
    losses = []
    for place in found:
        column, by_number = place.reading.column, place.reading.by_number
        before = by_number(place.untouched)
        after = by_number([r for r in place.records if r.spec.row == row])
        losses += [
            (column.cost(value) - column.cost(before[number])) / column.range
            for number, value in after.items()
            if number in before
        ]
    return f"{sum(loss > LOSS for loss in losses)} of {len(losses)}"
