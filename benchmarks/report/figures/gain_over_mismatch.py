"""What fine-tuning towards the metric gains, against how well the loss serves it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report import stats
from benchmarks.report.cells import note_value, values_by_replicate
from benchmarks.report.columns import Column
from benchmarks.report.curves import of_place, of_row
from benchmarks.report.figures.looks import arm_styles
from benchmarks.report.figures.panels import draw_mark, finish, make_single_panel
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL_GAP = 0.05
"""Least distance of two labels, as a share of the width."""


class Gain(NamedTuple):
    """A relative gain in cost with its deviation, both in percent."""

    mean: float
    std: float


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
    of the mean cost of loss-only fine-tuning, one deviation to either side.
    """
    points = [_point(layout, of_place(records, block, c), c) for c in layout.columns]
    shown = sorted(
        (point for point in points if point is not None and point.gains),
        key=lambda point: point.spearman,
    )
    if not shown:
        return None
    figure, panel = make_single_panel()
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    for label, style in arm_styles(layout).items():
        own = [(p.spearman, *p.gains[label]) for p in shown if label in p.gains]
        if own:
            x, mean, std = zip(*own, strict=True)
            draw_mark(panel, (x, mean, std), label=label, style=style)
    _name_columns(panel, shown)
    panel.set_xlabel("rank correlation of loss and cost along loss-only fine-tuning")
    panel.set_ylabel("gain over loss-only fine-tuning, % of its cost")
    return finish(figure, layout, block, "gain over mismatch")


def _point(
    layout: TableLayout, records: Sequence[RunRecord], column: Column
) -> Point | None:
    first = of_row(records, layout.mismatch_rows[0]) if layout.mismatch_rows else []
    found = [note_value(record, "loss_spearman") for record in first]
    spearman = stats.mean([value for value in found if value is not None])
    if spearman is None:
        return None
    gains = {
        row.label: _gain(layout, records, row.name, column)
        for row in layout.rows
        if row.name in layout.mismatch_rows
    }
    shown = {label: gain for label, gain in gains.items() if gain is not None}
    return Point(spearman, column, shown)


def _gain(
    layout: TableLayout, records: Sequence[RunRecord], row: str, column: Column
) -> Gain | None:
    base, own = (
        {
            replicate: [column.cost(value) for value in values]
            for replicate, values in values_by_replicate(
                of_row(records, name), layout.reading(column)
            ).items()
        }
        for name in (layout.loss_only_row or "", row)
    )
    versus = stats.compare(base, own)
    whole = stats.mean(versus.base) if versus is not None else None
    # Where loss-only fine-tuning costs nothing there is nothing to gain a share of.
    if versus is None or not whole:
        return None
    spread = stats.sample_std(versus.differences) or 0.0
    return Gain(100.0 * versus.gain / whole, 100.0 * spread / whole)


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
