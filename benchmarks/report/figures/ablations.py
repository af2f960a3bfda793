"""What ablated rows reach: by name, and against how well they predict."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.cells import note_value
from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import of_row
from benchmarks.report.figures.panels import COLOURS, draw_mark, draw_panels, row_styles
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ROW_INCHES, FRAME_INCHES = 0.21, 1.7
"""Height of a row, and of what is above and below the rows of a panel."""

Spread = tuple[float, float, float]
"""Place on the other axis, mean and deviation."""
Noted = tuple[str, dict[str, Spread]]
"""A note, and what it says by label of the row."""
WORDED = {
    "value_error_guided": "error of the value function\nalong guided steps, as a cost",
    "spearman_guided": "rank correlation of the value\nfunction along guided steps",
}
"""Notes that tell how well a value function predicts; the first one known is shown.

Both are of guided trajectories, which the value function is made for.
"""


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


def ablation_scatter(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how well each ablated value function predicts against the final metric.

    Reads the note `value_error_guided`, or `spearman_guided` in columns where no row
    has it.

    Source: Huang et al., CVPR 2021, Fig. 3(b).
    """
    styles = row_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> Noted | None:
        tries = ((note, _ablation(layout, own, note, reading)) for note in WORDED)
        return next((found for found in tries if len(found[1]) > 1), None)

    def draw(panel: "Axes", column: Column, content: Noted) -> None:
        note, rows = content
        for label, (x, y, spread) in rows.items():
            draw_mark(panel, (x, y, spread), label=label, style=styles[label])
        if note == "value_error_guided":
            panel.set_xscale("log")
        panel.set_xlabel(WORDED[note])
        panel.set_ylabel(column.axis_label)

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="ablation\nbars: {spread}"
    )


def _ablation(
    layout: TableLayout, records: Sequence[RunRecord], note: str, reading: Reading
) -> dict[str, Spread]:
    """Return note, final metric and its deviation by label of the ablation rows."""
    points = {}
    for row in layout.rows:
        own = of_row(records, row.name) if row.name in layout.ablation_rows else []
        values = reading.all_finals(own)
        found = [note_value(record, note) for record in own]
        x = stats.mean([value for value in found if value is not None])
        y = stats.mean(values)
        if x is not None and y is not None:
            points[row.label] = x, y, stats.sample_std(values) or 0.0
    return points
