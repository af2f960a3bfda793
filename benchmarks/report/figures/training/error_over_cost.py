"""What a trained network reached over what its training took: seconds, or queries."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
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
FAR = 40.0
"""Points this many times farther from the median than usual are left out of view."""


def metric_over_seconds(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric of every row over the seconds it took, training included."""

    def seconds(record: RunRecord) -> float:
        return record.seconds[NETWORK] + record.seconds.get("total", 0.0)

    axis = "seconds: training on all cores, then the run on one"
    return _over(layout, records, block, seconds, ("seconds", axis))


def metric_over_queries(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric of every row over the metric queries it made."""
    axis = "metric queries"
    return _over(layout, records, block, lambda r: r.queries, (axis, axis))


def _over(
    layout: TableLayout,
    records: Sequence[RunRecord],
    block: Block,
    cost: Callable[[RunRecord], float],
    names: tuple[str, str],
) -> "Figure | None":
    """Draw the figure; the cost is named in the title, then on the axis."""
    title, axis = names
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
        far = _far(points)
        for label, point in points.items():
            seen = ([], [], []) if label in far else point
            draw_mark(panel, seen, label=label, style=styles[label])
        _say(panel, [f"{label}: {points[label][1]:.3f}" for label in far])
        # Some make no query at all: zero has a place of its own.
        panel.set_xscale("symlog", linthresh=10)
        panel.set_xlim(left=-1)
        panel.set_xlabel(axis)
        panel.set_ylabel(column.axis_label)

    what = f"test metric over {title}\nbars: {{spread}}"
    return draw_panels(layout, trained, block, read=read, draw=draw, what=what)


def _far(points: Mapping[str, Point]) -> list[str]:
    """Return the labels of points that would make all others look alike."""
    values = [value for _, value, _ in points.values()]
    middle = median(values)
    usual = median(abs(value - middle) for value in values)
    return [
        label
        for label, (_, value, _) in points.items()
        if usual > 0 and abs(value - middle) > FAR * usual
    ]


def _say(panel: "Axes", values: list[str]) -> None:
    """Write what is out of view, if anything is, into the corner of a panel."""
    if values:
        text = "\n".join(["far out of view", *values])
        panel.text(0.02, 0.98, text, transform=panel.transAxes, va="top")
