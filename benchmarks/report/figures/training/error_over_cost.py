"""What a trained network reached over what its training took: seconds, or queries."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.report.curves import of_row
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_mark, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import NETWORK, RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float, float]
"""Cost, mean and deviation of the metric."""


def metric_over_seconds(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric of every row over the seconds it took, training included."""

    def seconds(record: RunRecord) -> float:
        return record.seconds[NETWORK] + record.seconds.get("total", 0.0)

    axis = "seconds: training on all cores, then the run on one"
    return _over(layout, records, block, seconds, axis)


def metric_over_queries(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric of every row over the metric queries it made."""
    return _over(layout, records, block, lambda r: r.queries, "metric queries")


def _over(
    layout: TableLayout,
    records: Sequence[RunRecord],
    block: Block,
    cost: Callable[[RunRecord], float],
    axis: str,
) -> "Figure | None":
    trained = [record for record in records if NETWORK in record.seconds]
    styles = arm_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> dict[str, Point]:
        found = {}
        for row in layout.rows:
            runs = of_row(own, row.name)
            values = reading.all_finals(runs)
            if values:
                spent = stats.mean([cost(run) for run in runs]) or 0.0
                spread = stats.sample_std(values) or 0.0
                found[row.label] = (spent, stats.mean(values) or 0.0, spread)
        return found

    def draw(panel: "Axes", column: Column, points: dict[str, Point]) -> None:
        for label, point in points.items():
            draw_mark(panel, point, label=label, style=styles[label])
        # Some make no query at all: zero has a place of its own.
        panel.set_xscale("symlog", linthresh=10)
        panel.set_xlim(left=-1)
        panel.set_xlabel(axis)
        panel.set_ylabel(column.axis_label)

    what = f"test metric over {axis}\nbars: {{spread}}"
    return draw_panels(layout, trained, block, read=read, draw=draw, what=what)
