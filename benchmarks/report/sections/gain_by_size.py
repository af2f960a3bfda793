"""The section on gain and harm by the size of the observe split."""

from collections.abc import Sequence

from benchmarks.report.cells import BETTER, WORSE, Cell
from benchmarks.report.columns import NOTHING
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section

GAIN_BY_SIZE = "## Gain and harm by the size of the observe split"
NAMES = ("size", "method", "cells", "better", "worse")
NAMES += ("mean", "least", "found", "harmed")
LEGEND = (
    "`size`: examples of the observe split. `cells`: columns of all blocks of that "
    "size, `better` and `worse`: those with that sign. `mean` and `least`: gain in "
    "cost on test over the base row, as a share of the range of the metric; below 0 "
    "is harm. `found`: total gain, divided by that of the best row of every cell, "
    "which is partly luck, so that no row can have it all; `·` where there is nothing "
    "to gain. `harmed`: share of the values that are worse than the base row by more "
    "than the margin of `=`."
)


def gain_by_size(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section with a line per size and row; empty without sizes."""
    lines, named = [], {(*_place(cell), cell.row.name): cell for cell in cells}
    for size, found in cells_by_size(layout, cells).items():
        best: dict[tuple[str, str], float] = {}
        for cell in found:
            best[_place(cell)] = max(best.get(_place(cell), 0.0), _gain_of(cell))
        for row in layout.rows:
            own = [cell for cell in found if cell.row == row]
            if own:
                bases = [named[*_place(cell), cell.row.base_row] for cell in own]
                words = [*_words(own, best), _harmed(own, bases)]
                lines.append([f"{size:,}", row.label, *words])
    return section(GAIN_BY_SIZE, LEGEND, lines, NAMES)


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


def _gain_of(cell: Cell) -> float:
    """Return the gain of a tested cell over its base, as a share of the range."""
    versus = cell.against_base
    assert versus is not None
    return versus.gain / cell.column.range


def _place(cell: Cell) -> tuple[str, str]:
    return cell.block.name, cell.column.name


def _words(own: Sequence[Cell], best: dict[tuple[str, str], float]) -> list[str]:
    """Return what a line says of the cells of a row, without size and method."""
    gains = [_gain_of(cell) for cell in own]
    possible = sum(best[_place(cell)] for cell in own)
    least = sum(cell.column.margin for cell in own)
    return [
        str(len(own)),
        *(str(sum(cell.verdict == word for cell in own)) for word in (BETTER, WORSE)),
        f"{sum(gains) / len(gains):+z.4f}",
        f"{min(gains):+z.4f}",
        f"{100 * sum(gains) / possible:z.0f} %" if possible > least else NOTHING,
    ]


def _harmed(own: Sequence[Cell], bases: Sequence[Cell]) -> str:
    """Return the share of the values of cells that are worse than those of the base."""
    more = [
        cost - base.costs[key] > cell.column.margin * cell.column.range
        for cell, base in zip(own, bases, strict=True)
        for key, cost in cell.costs.items()
        if key in base.costs
    ]
    return f"{100 * sum(more) / len(more):z.0f} %" if more else NOTHING
