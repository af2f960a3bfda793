"""What each row gains over its base, against the size of the observe split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report.cells import Cell, judge
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_mark, finish, make_single_panel
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.sections.gain_by_size import cells_by_size, gain_of
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAND = 0.8
"""Share of the room of a size that its marks are spread over."""
ALL_BLOCKS = Block("all", "all blocks")


class Mark(NamedTuple):
    """A cell: its place on the axis, and its gain with half its t interval."""

    x: float
    gain: float
    half: float


def gain_over_size(
    layout: TableLayout, records: Sequence[RunRecord]
) -> "Figure | None":
    """Draw the gain in cost over the base row, one mark per row, block and column.

    Gains are shares of the range of their metric, with their 95 % t intervals. Sizes
    stand at equal distances, the marks of one size beside each other by row.
    """
    sizes = cells_by_size(layout, judge(layout, records))
    if not sizes:
        return None
    marks = _marks(sizes)
    figure, panel = make_single_panel()
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    for label, style in arm_styles(layout).items():
        if label in marks:
            x, gain, half = zip(*marks[label], strict=True)
            draw_mark(panel, (x, gain, half), label=label, style=style)
    panel.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    panel.set_xlabel("examples of the observe split (sizes at equal distances)")
    panel.set_ylabel("gain in cost on test, share of its range")
    what = "gain over the base row, with 95 % t intervals; below 0 is harm"
    return finish(figure, layout, ALL_BLOCKS, what)


def _marks(sizes: dict[int, list[Cell]]) -> dict[str, list[Mark]]:
    """Return the marks by label of their row."""
    found: dict[str, list[Mark]] = {}
    for place, cells in enumerate(sizes.values()):
        for number, cell in enumerate(cells):
            x = place + BAND * ((number + 0.5) / len(cells) - 0.5)
            found.setdefault(cell.row.label, []).append(Mark(x, *_gain(cell)))
    return found


def _gain(cell: Cell) -> tuple[float, float]:
    """Return the gain of a cell over its base with half its interval, as shares."""
    versus = cell.against_base
    assert versus is not None
    low, high = versus.interval or (versus.gain, versus.gain)
    return gain_of(cell), (high - low) / 2 / cell.column.range
