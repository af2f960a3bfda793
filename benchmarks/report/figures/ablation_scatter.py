"""How well ablated value functions predict, against what they lead to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.cells import note_value
from benchmarks.report.columns import Column
from benchmarks.report.curves import of_row
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_mark, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORDED = {
    "value_error_guided": "error of the value function\nalong guided steps, as a cost",
    "spearman_guided": "rank correlation of the value\nfunction along guided steps",
}
"""Notes that tell how well a value function predicts; the first one known is shown.

Both are of guided trajectories, which the value function is made for.
"""

Spread = tuple[float, float, float]
"""Place on the x axis, mean and deviation."""

Noted = tuple[str, dict[str, Spread]]
"""A note, and what it says by label of the row."""


def ablation_scatter(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how well each ablated value function predicts against the final metric.

    Reads the note `value_error_guided`, or `spearman_guided` in columns where no row
    has it.

    Source: Huang et al., CVPR 2021, Fig. 3(b).
    """
    styles = arm_styles(layout)

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
