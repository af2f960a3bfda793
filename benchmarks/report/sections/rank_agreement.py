"""The section on how well a learned loss ranks outputs as the metric does."""

from collections.abc import Sequence

from benchmarks.report.cells import Cell, note_value
from benchmarks.report.reading import Reading
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table

AGREEMENT = "## Rank correlation with the metric"
LEGEND = (
    "Spearman's rank correlation of a loss with the metric's cost, over groups of "
    "examples. `held out`: recorded logits that the surrogate has not seen, with "
    "labels made up from all right to chance, as in its fitting. `observe`: outputs of "
    "the trained network with the true labels. Mean and deviation over replicates."
)
NOTES = {
    "held out": "rank_correlation",
    "held out, cross-entropy": "rank_correlation_cross_entropy",
    "observe": "rank_correlation_plain",
    "observe, cross-entropy": "rank_correlation_plain_cross_entropy",
}


def rank_agreement(cells: Sequence[Cell]) -> list[str]:
    """Return the section as Markdown; empty if no record notes a rank correlation."""
    lines = [
        [cell.column.label, cell.row.label, *(_spread(cell, n) for n in NOTES.values())]
        for cell in cells
        if cell.note(NOTES["held out, cross-entropy"]) is not None
        and Reading(cell.column).is_aim_of(cell.records)
    ]
    if not lines:
        return []
    table = text_table(lines, ["column", "method", *NOTES])
    return [AGREEMENT, LEGEND, to_markdown(table)]


def _spread(cell: Cell, name: str) -> str:
    found = (note_value(record, name) for record in cell.finished)
    return cell.column.summary([value for value in found if value is not None])
