"""A user's results beside those committed here and those of the paper."""

from collections.abc import Sequence

from benchmarks.report.cells import Cell, judge
from benchmarks.report.columns import NOTHING
from benchmarks.report.layout import TableLayout, data_variants
from benchmarks.report.render import section
from benchmarks.report.tables import number_text
from benchmarks.runs.record import RunRecord

EXPLAINED = (
    "`committed`: the results in this repository. `yours`: the runs of this report. "
    "Both are mean ± sample std (n) on the test split, over replicates where a side "
    "has several, or else within its one network; `difference` is yours minus "
    "committed. Machines round differently, so small differences are expected."
)
BESIDE_COMMITTED = "## Beside the committed results"
NONE_COMMITTED = "There are no committed results of this tier."


def side_by_side(
    layout: TableLayout, own: Sequence[RunRecord], committed: Sequence[RunRecord]
) -> list[str]:
    """Return the section with one line for every cell that either side has.

    Args:
        layout: the experiment.
        own: the user's records.
        committed: records of the same experiment and tier; may be none.

    Raises:
        DataError: if the records of a side may not share one table.
    """
    if not committed:
        return [BESIDE_COMMITTED, NONE_COMMITTED]
    mine, reference = _by_place(layout, own), _by_place(layout, committed)
    lines = []
    for block in layout.blocks:
        for column in layout.columns:
            for row in layout.rows:
                place = (block.name, row.name, column.name)
                cell, other = mine.get(place), reference.get(place)
                if cell is not None or other is not None:
                    named = [block.label, column.heading, row.label]
                    lines.append([*named, *_numbers(cell, other)])
    names = ["block", "column", "method", "committed", "yours", "difference", "paper"]
    explained = " ".join([EXPLAINED, *_other_data(layout, own, committed)])
    return section(BESIDE_COMMITTED, explained, lines, names)


def _other_data(
    layout: TableLayout, own: Sequence[RunRecord], committed: Sequence[RunRecord]
) -> list[str]:
    """Return a sentence for every column whose data are not the committed ones."""
    found = []
    for column in layout.columns:
        ours, theirs = (data_variants(records, column) for records in (committed, own))
        if ours and theirs and ours != theirs:
            found.append(
                f"{column.label} is not comparable: committed on "
                f"{', '.join(sorted(ours))}, yours on {', '.join(sorted(theirs))}."
            )
    return found


def _by_place(
    layout: TableLayout, records: Sequence[RunRecord]
) -> dict[tuple[str, str, str], Cell]:
    cells = judge(layout.fitted(records), records)
    return {(c.block.name, c.row.name, c.column.name): c for c in cells}


def _numbers(own: Cell | None, committed: Cell | None) -> list[str]:
    """Return committed, own, difference and the paper's number as text."""
    known = own or committed
    assert known is not None
    column, paper = known.column, known.paper
    difference = NOTHING
    if own and committed and own.mean is not None and committed.mean is not None:
        difference = column.signed(own.mean - committed.mean)
    texts = [
        NOTHING if cell is None else number_text(cell) for cell in (committed, own)
    ]
    printed = NOTHING if paper is None else column.spread(paper.value, paper.std)
    return [*texts, difference, printed]
