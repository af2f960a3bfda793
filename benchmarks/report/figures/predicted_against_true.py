"""What value functions predict against the metric, on held-out trajectories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.columns import Column
from benchmarks.report.curves import of_row
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_panels
from benchmarks.report.figures.parts.points import Points, noted_points
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def predicted_against_true(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what value functions predict against the metric on held-out trajectories.

    Reads the notes `health_true` and `health_predicted`, lists of equal length. One
    colour per row, with all replicates that have these notes. The grey line is a
    perfect prediction; hollow points lie beyond the panel.

    Source: Huang et al., CVPR 2021, Fig. 3(a).
    """
    styles = arm_styles(layout)
    names = ("health_true", "health_predicted")

    def read(own: list[RunRecord], reading: Reading) -> dict[str, Points]:
        if not reading.is_aim_of(own):
            return {}
        clouds = {
            row.label: noted_points(of_row(own, row.name), names)
            for row in layout.rows
            if row.name in (layout.cloud_rows or layout.row_names)
        }
        return {label: cloud for label, cloud in clouds.items() if cloud}

    def draw(panel: "Axes", column: Column, clouds: dict[str, Points]) -> None:
        truths = [true for cloud in clouds.values() for true, _ in cloud]
        # One wild value function must not squeeze the others into a line.
        margin = max(truths) - min(truths)
        low, high = min(truths) - margin, max(truths) + margin
        for label, cloud in clouds.items():
            colour, _, marker = styles[label]
            inside = [point for point in cloud if low <= point[1] <= high]
            beyond = [(t, min(max(p, low), high)) for t, p in set(cloud) - {*inside}]
            look: dict[str, Any] = {"s": 10, "alpha": 0.6, "marker": marker}
            panel.scatter(*_axes(inside), color=colour, label=label, **look)
            panel.scatter(*_axes(beyond), facecolors="none", edgecolors=colour, **look)
            panel.axline((truths[0], truths[0]), slope=1, color="0.6", linewidth=0.8)
        panel.set_xlabel(f"true {column.cost_label}")
        panel.set_ylabel("predicted (hollow: beyond)")

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="the value function"
    )


def _axes(points: Sequence[tuple[float, ...]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
