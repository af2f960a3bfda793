"""The section on how rows do over all columns of some blocks, at their own budgets."""

from collections.abc import Sequence

from benchmarks.report.fair_summary import (
    HEADINGS,
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
    "the most in any run. The best row of a column is partly lucky."
)
ALL = 10**9
"""More queries than any run makes."""


def over_columns(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section; empty if the layout sums nothing up."""
    lines = standing_lines(layout, records)
    return section(OVER_COLUMNS, LEGEND, lines, ["blocks", *HEADINGS])


def standing_lines(
    layout: TableLayout, records: Sequence[RunRecord]
) -> list[list[str]]:
    """Return a line for every group of blocks and row, the best first."""
    return [
        [name, *standing.texts]
        for name, found in standings_by_group(layout, records).items()
        for standing in found
    ]


def standings_by_group(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[str, list[Standing]]:
    """Return the standings of every group of blocks that has records."""
    ranked = {}
    for name, blocks in layout.summed.items():
        found = []
        for block in blocks:
            ran = {r.spec.column for r in records if r.spec.block == block}
            columns = [c.name for c in layout.columns if c.source in ran]
            found += places(layout, records, block, columns)
        if found:
            ranked[name] = standings(matches(found, ALL))
    return ranked
