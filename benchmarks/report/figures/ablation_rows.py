"""The final metric of every ablated row, by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.report.curves import of_row
from benchmarks.report.figures.parts.looks import COLOURS
from benchmarks.report.figures.parts.panels import draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES, FRAME_INCHES = 0.21, 1.7
"""Height of a row, and of what is above and below the rows of a panel."""

Spread = tuple[int, float, float]
"""Place from the top, mean and deviation."""


def ablation_rows(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the final metric of each ablated row: mean and one deviation, by name.

    Loss-only fine-tuning stands on top; the line is its mean.
    """
    if layout.loss_only_row is None:
        return None

    def read(own: list[RunRecord], reading: Reading) -> dict[str, Spread]:
        names = (layout.loss_only_row, *layout.ablation_rows)
        ends = {
            row.label: reading.all_finals(of_row(own, row.name))
            for row in layout.rows
            if row.name in names
        }
        found = [(label, values) for label, values in ends.items() if values]
        if len(found) < 2:
            return {}
        return {
            label: (place, stats.mean(values) or 0.0, stats.sample_std(values) or 0.0)
            for place, (label, values) in enumerate(found)
        }

    def draw(panel: "Axes", column: Column, rows: dict[str, Spread]) -> None:
        places, means, spreads = zip(*rows.values(), strict=True)
        panel.errorbar(means, places, xerr=spreads, fmt="o", color=COLOURS[0], ms=4)
        panel.axvline(means[0], color="0.6", linewidth=0.8)
        first = panel.get_subplotspec().is_first_col()  # type: ignore[union-attr]
        panel.set_yticks(places, list(rows) if first else [], fontsize="small")
        panel.invert_yaxis()
        panel.set_xlabel(column.axis_label)

    what = "ablated rows\nbars: {spread}"
    figure = draw_panels(layout, records, block, read=read, draw=draw, what=what)
    if figure is not None:
        _make_room(figure)
    return figure


def _make_room(figure: "Figure") -> None:
    """Make a figure high enough that the labels of its rows do not touch."""
    grid = figure.axes[0].get_gridspec()
    rows = max(len(panel.get_yticks()) for panel in figure.axes)
    high = (ROW_INCHES * rows + FRAME_INCHES) * (1 if grid is None else grid.nrows)
    figure.set_figheight(max(figure.get_figheight(), high))
