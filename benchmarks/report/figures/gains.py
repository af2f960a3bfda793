"""What rows gain over others: against mismatch, and against the size of observe."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report.cells import Cell, against, judge
from benchmarks.report.columns import Column
from benchmarks.report.figures.panels import (
    ALL_BLOCKS,
    draw_mark,
    finish,
    make_single_panel,
    row_styles,
    units,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.sections.gain_by_size import cells_by_size
from benchmarks.report.stats import Comparison
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LABEL_GAP = 0.05
"""Least distance of two labels, as a share of the width."""
NAME_GAP_INCHES = 0.15
"""Room between the names of columns and the title, and at every other edge."""
BAND = 0.8
"""Share of the room of a size that its marks are spread over."""


class Gain(NamedTuple):
    """A gain in cost as a share, with half its t interval."""

    mean: float
    half: float


class Point(NamedTuple):
    """A column: how well the loss serves it, and the gains by label of the row."""

    spearman: float
    column: Column
    gains: dict[str, Gain]


def gain_over_mismatch(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the gain in cost over loss-only fine-tuning, one point per column and row.

    The x axis is the note `loss_spearman` of the first of the layout's mismatch rows:
    the rank correlation of loss and cost along loss-only fine-tuning. Gains are shares
    of the mean cost of loss-only fine-tuning, with their 95 % t intervals.
    """
    if not layout.mismatch_rows:
        return None
    own = [cell for cell in judge(layout, records) if cell.block == block]
    points = [_point(layout, own, column) for column in layout.columns]
    shown = sorted(
        (point for point in points if point is not None and point.gains),
        key=lambda point: point.spearman,
    )
    if not shown:
        return None
    figure, panel = make_single_panel()
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    for label, style in row_styles(layout).items():
        drawn = [(p.spearman, *p.gains[label]) for p in shown if label in p.gains]
        if drawn:
            x, mean, half = zip(*drawn, strict=True)
            draw_mark(panel, (x, mean, half), label=label, style=style)
    _name_columns(panel, shown)
    panel.set_xlabel("rank correlation of loss and cost along loss-only fine-tuning")
    panel.set_ylabel("gain over loss-only fine-tuning, % of its cost")
    over = units(layout, records, block)
    what = f"gain over mismatch, with 95 % t intervals\nover {over}"
    figure.set_layout_engine("constrained", h_pad=NAME_GAP_INCHES)
    figure.set_figheight(figure.get_figheight() + 4 * NAME_GAP_INCHES)
    return finish(figure, layout, block, what)


def _point(layout: TableLayout, cells: Sequence[Cell], column: Column) -> Point | None:
    rows = {cell.row.name: cell for cell in cells if cell.column == column}
    base, first = (
        rows.get(name or "") for name in (layout.loss_only_row, layout.mismatch_rows[0])
    )
    spearman = None if first is None else first.note("loss_spearman")
    if base is None or spearman is None:
        return None
    gains = {
        cell.row.label: _gain(base, cell)
        for cell in rows.values()
        if cell.row.name in layout.mismatch_rows
    }
    shown = {label: gain for label, gain in gains.items() if gain is not None}
    return Point(spearman, column, shown)


def _gain(base: Cell, cell: Cell) -> Gain | None:
    versus = against(base, cell)
    # Where loss-only fine-tuning costs nothing there is nothing to gain a share of.
    whole = None if versus is None else cell.column.cost(cell.column.sign * versus.base)
    if versus is None or not whole:
        return None
    return _share(versus, whole / 100.0)


def _share(versus: Comparison, whole: float) -> Gain:
    """Return a gain with half its t interval, as shares of a whole."""
    low, high = versus.interval or (versus.gain, versus.gain)
    return Gain(versus.gain / whole, (high - low) / 2 / whole)


def _name_columns(panel: "Axes", points: Sequence[Point]) -> None:
    """Write the names of the columns above the panel, each with a line to its place."""
    low, high = panel.get_xlim()
    gap = LABEL_GAP * (high - low)
    places: list[float] = []
    for point in points:
        places.append(max([point.spearman, *(place + gap for place in places[-1:])]))
    for place, point in zip(places, points, strict=True):
        panel.annotate(
            point.column.label,
            xy=(point.spearman, 1.0),
            xytext=(place, 1.04),
            xycoords=panel.get_xaxis_transform(),
            textcoords=panel.get_xaxis_transform(),
            rotation=35,
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6},
        )
        panel.axvline(point.spearman, color="0.8", linewidth=0.6, zorder=0)


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
    marks: dict[str, list[tuple[float, float, float]]] = {}
    for place, cells in enumerate(sizes.values()):
        for number, cell in enumerate(cells):
            assert cell.against_base is not None
            x = place + BAND * ((number + 0.5) / len(cells) - 0.5)
            gain = _share(cell.against_base, cell.column.range)
            marks.setdefault(cell.row.label, []).append((x, *gain))
    figure, panel = make_single_panel()
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    for label, style in row_styles(layout).items():
        if label in marks:
            x, mean, half = zip(*marks[label], strict=True)
            draw_mark(panel, (x, mean, half), label=label, style=style)
    panel.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    panel.set_xlabel("examples of the observe split (sizes at equal distances)")
    panel.set_ylabel("gain in cost on test, share of its range")
    what = "gain over the base row, with 95 % t intervals; below 0 is harm"
    return finish(figure, layout, ALL_BLOCKS, what)
