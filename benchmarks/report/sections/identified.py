"""The section on which metrics were identified, and what was handed over."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import Cell, note_value
from benchmarks.report.columns import NOTHING
from benchmarks.report.reading import Reading
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table

if TYPE_CHECKING:
    from pandas import DataFrame

IDENTIFIED = "## Identified"
LEGEND = (
    "A metric is identified if the value function predicts it before it is queried. "
    "`identified`: share of the searches of all runs in which it was, `after`: mean "
    "queries until then, `untouched`: share that returned the network as it was, "
    "`runs`: finished runs, each with its searches."
)


def identified(cells: Sequence[Cell]) -> list[str]:
    """Return the section as Markdown; empty if no record notes what was identified."""
    table = identified_table(cells)
    return [IDENTIFIED, LEGEND, to_markdown(table)] if len(table) else []


def identified_table(cells: Sequence[Cell]) -> "DataFrame":
    """Return one line per block, column and row whose records hold the notes.

    Columns that show a further metric of the runs of another one have none.
    """
    lines = [
        _line(cell)
        for cell in cells
        if cell.note("identified") is not None
        and Reading(cell.column).is_aim_of(cell.records)
    ]
    names = ["block", "column", "method", "identified", "after", "untouched", "runs"]
    return text_table(lines, names)


def _line(cell: Cell) -> list[str]:
    return [
        cell.block.label,
        cell.column.label,
        cell.row.label,
        _percent(cell.note("identified")),
        _queries_until(cell),
        _percent(cell.note("untouched")),
        str(len(cell.finished)),
    ]


def _queries_until(cell: Cell) -> str:
    """Return the mean queries until a metric was identified, over searches it was in.

    A run notes the mean over such searches of its own, and their share.
    """
    found = [
        (note_value(record, "identified"), note_value(record, "identified_after"))
        for record in cell.finished
    ]
    known = [(share, after) for share, after in found if share and after is not None]
    if not known:
        return NOTHING
    whole = sum(share for share, _ in known)
    return f"{sum(share * after for share, after in known) / whole:.1f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f} %"
