"""The section on gain and harm by the size of the observe split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import BETTER, WORSE, Cell
from benchmarks.report.columns import NOTHING
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table

if TYPE_CHECKING:
    from pandas import DataFrame

GAIN_BY_SIZE = "## Gain and harm by the size of the observe split"
LEGEND = (
    "`size`: examples of the observe split. `cells`: columns of all blocks of that "
    "size, `better` and `worse`: those with that sign. `mean` and `least`: gain in "
    "cost on test over the base row, as a share of the range of the metric; below 0 "
    "is harm. `found`: sum of the gains, as a share of what the best row of every "
    "cell gains, if there is anything to gain on average."
)


def gain_by_size(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section as Markdown; empty if the layout tells no sizes."""
    table = gain_by_size_table(layout, cells)
    return [GAIN_BY_SIZE, LEGEND, to_markdown(table)] if len(table) else []


def gain_by_size_table(layout: TableLayout, cells: Sequence[Cell]) -> "DataFrame":
    """Return one line per size and row."""
    lines = []
    for size, found in cells_by_size(layout, cells).items():
        best: dict[tuple[str, str], float] = {}
        for cell in found:
            best[_place(cell)] = max(best.get(_place(cell), 0.0), gain_of(cell))
        for row in layout.rows:
            own = [cell for cell in found if cell.row == row]
            if own:
                lines.append([f"{size:,}", row.label, *_words(own, best)])
    names = ["size", "method", "cells", "better", "worse", "mean", "least", "found"]
    return text_table(lines, names)


def cells_by_size(layout: TableLayout, cells: Sequence[Cell]) -> dict[int, list[Cell]]:
    """Return the tested cells by size of their observe split, both in order.

    Sizes increase; the cells of one are in the order of their rows. Empty if the layout
    tells no sizes.
    """
    found: dict[int, list[Cell]] = {}
    if layout.observed_of is None:
        return found
    for cell in sorted(cells, key=lambda cell: layout.rows.index(cell.row)):
        if cell.tested and cell.against_base:
            size = layout.observed_of(cell.records[0].spec)
            found.setdefault(size, []).append(cell)
    return dict(sorted(found.items()))


def gain_of(cell: Cell) -> float:
    """Return the gain of a tested cell over its base, as a share of the range."""
    versus = cell.against_base
    assert versus is not None
    return versus.gain / cell.column.range


def _place(cell: Cell) -> tuple[str, str]:
    return cell.block.name, cell.column.name


def _words(own: Sequence[Cell], best: dict[tuple[str, str], float]) -> list[str]:
    """Return what a line says of the cells of a row, without size and method."""
    gains = [gain_of(cell) for cell in own]
    possible = sum(best[_place(cell)] for cell in own)
    least = sum(cell.column.margin for cell in own)
    return [
        str(len(own)),
        *(str(sum(cell.verdict == word for cell in own)) for word in (BETTER, WORSE)),
        f"{sum(gains) / len(gains):+.4f}",
        f"{min(gains):+.4f}",
        f"{100 * sum(gains) / possible:.0f} %" if possible > least else NOTHING,
    ]
