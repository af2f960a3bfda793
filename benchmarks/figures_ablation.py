"""Ablated value functions: how well they predict, and how well one does with them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import stats
from benchmarks.cells import note_value
from benchmarks.curves import finals, of_row
from benchmarks.layout import Block, Column, TableLayout
from benchmarks.panels import COLOURS, arm_styles, draw_panels, metric_label
from benchmarks.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Spread = tuple[float, float, float]
"""Place on the x axis, mean and deviation."""


def ablation_scatter(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how well each ablated value function predicts against the final metric.

    Reads the note `value_error`, or in columns where no row has it `spearman`.

    Source: Huang et al., CVPR 2021, Fig. 3(b).
    """
    styles = arm_styles(layout)
    worded = {
        "value_error": "error of the value function, as a cost",
        "spearman": "Spearman correlation of the value function",
    }

    def read(own: list[RunRecord]) -> tuple[str, dict[str, Spread]] | None:
        tries = ((note, _ablation(layout, own, note)) for note in worded)
        return next((found for found in tries if len(found[1]) > 1), None)

    def draw(
        panel: "Axes", column: Column, content: tuple[str, dict[str, Spread]]
    ) -> None:
        note, rows = content
        for label, (x, y, spread) in rows.items():
            colour, _, marker = styles[label]
            panel.errorbar(
                x, y, spread, fmt=marker, color=colour, label=label, capsize=2
            )
        if note == "value_error":
            panel.set_xscale("log")
        panel.set_xlabel(worded[note])
        panel.set_ylabel(metric_label(column))

    return draw_panels(layout, records, block, read=read, draw=draw, what="ablation")


def ablation_rows(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the final metric of each ablated row: mean and one deviation, by name.

    They stand below loss-only fine-tuning, whose mean is the line.
    """
    if layout.loss_only_row is None:
        return None

    def read(own: list[RunRecord]) -> dict[str, Spread]:
        names = (layout.loss_only_row, *layout.ablation_rows)
        ends = {
            row.label: finals(of_row(own, row.name), "test", layout.unit)
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
        panel.set_xlabel(metric_label(column))

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="ablated rows"
    )


def _ablation(
    layout: TableLayout, records: Sequence[RunRecord], note: str
) -> dict[str, Spread]:
    """Return note, final metric and its deviation by label of the ablation rows."""
    points = {}
    for row in layout.rows:
        own = of_row(records, row.name) if row.name in layout.ablation_rows else []
        values = finals(own, "test", layout.unit)
        found = [note_value(record, note) for record in own]
        x = stats.mean([value for value in found if value is not None])
        y = stats.mean(values)
        if x is not None and y is not None:
            points[row.label] = x, y, stats.sample_std(values) or 0.0
    return points
