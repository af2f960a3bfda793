"""The test metric along fine-tuning."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, curve, of_arm, without_budget
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_band, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cost_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric along fine-tuning: mean and one deviation.

    One line per arm whose trace has more than one step. If the layout singles rows out,
    only they are drawn, with loss-only fine-tuning.
    """
    styles = arm_styles(layout)
    chosen = (layout.loss_only_row, *(layout.cloud_rows or layout.arms))

    def read(own: list[RunRecord], reading: Reading) -> dict[str, Curve]:
        plain = without_budget(own, reading)
        lines = {
            label: curve(of_arm(plain, arm, reading), reading, axis="step")
            for arm, label in layout.arms.items()
            if arm in chosen
        }
        return {label: line for label, line in lines.items() if line}

    def draw(panel: "Axes", column: Column, lines: dict[str, Curve]) -> None:
        for label, line in lines.items():
            draw_band(panel, line, label=label, style=styles[label])
        panel.set_xlabel("fine-tuning steps (metric on test)")
        panel.set_ylabel(column.axis_label)

    return draw_panels(
        layout,
        records,
        block,
        read=read,
        draw=draw,
        what="along fine-tuning\nbands: {spread}",
    )
