"""What each row gains over its base, against the size of the observe split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report.cells import Cell, judge
from benchmarks.report.figures.looks import arm_styles
from benchmarks.report.figures.panels import draw_mark, finish, make_single_panel
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREAD = 1.25
"""Greatest factor between the size of an observe split and where a mark stands."""
ALL_BLOCKS = Block("all", "all blocks")


class Mark(NamedTuple):
    """A cell: where it stands, and its gain with half its t interval, as shares."""

    x: float
    gain: float
    half: float


def gain_over_size(
    layout: TableLayout, records: Sequence[RunRecord]
) -> "Figure | None":
    """Draw the gain in cost over the base row, one mark per row, block and column.

    Gains are shares of the range of their metric, with their 95 % t intervals. Marks of
    one size stand beside each other, in the order of rows.
    """
    marks = _marks(layout, records)
    if not marks:
        return None
    figure, panel = make_single_panel()
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    for label, style in arm_styles(layout).items():
        if label in marks:
            x, gain, half = zip(*marks[label], strict=True)
            draw_mark(panel, (x, gain, half), label=label, style=style)
    panel.set_xscale("log")
    panel.set_xlabel("examples of the observe split (marks of one size are spread)")
    panel.set_ylabel("gain in cost on test, share of its range")
    what = "gain over the base row, with 95 % t intervals; below 0 is harm"
    return finish(figure, layout, ALL_BLOCKS, what)


def _marks(layout: TableLayout, records: Sequence[RunRecord]) -> dict[str, list[Mark]]:
    """Return the marks by label of their row; none if sizes are not told."""
    if layout.observed_of is None:
        return {}
    cells = [cell for cell in judge(layout, records) if cell.tested]
    cells.sort(key=lambda cell: layout.row_names.index(cell.row.name))
    sizes: dict[int, list[Cell]] = {}
    for cell in cells:
        if cell.against_base is not None:
            size = layout.observed_of(cell.records[0].spec)
            sizes.setdefault(size, []).append(cell)
    found: dict[str, list[Mark]] = {}
    for size, own in sizes.items():
        for place, cell in enumerate(own):
            x = size * SPREAD ** (2 * (place + 0.5) / len(own) - 1)
            found.setdefault(cell.row.label, []).append(Mark(x, *_gain(cell)))
    return found


def _gain(cell: Cell) -> tuple[float, float]:
    """Return the gain of a cell over its base with half its interval, as shares."""
    versus = cell.against_base
    assert versus is not None
    low, high = versus.interval or (versus.gain, versus.gain)
    return versus.gain / cell.column.range, (high - low) / 2 / cell.column.range
