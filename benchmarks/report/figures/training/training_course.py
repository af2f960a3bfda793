"""Loss and metric on observe, epoch by epoch, of networks that methods train."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, of_row
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import draw_band, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOSS, VALUE = "course_observe_loss", "course_{}"
"""Notes with a number an epoch: cross-entropy on observe, and a metric by its label."""


def training_course(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw cross-entropy and metric on observe over the epochs of a training.

    The left axis is the metric, the right one the loss.

    Source: Huang et al., ICML 2019, Fig. 5. Differs: on observe, as the test split is
    read once.
    """
    styles = arm_styles(layout)

    def read(
        own: list[RunRecord], reading: Reading
    ) -> dict[str, tuple[Curve, Curve | None]]:
        found = {}
        name = VALUE.format(reading.column.metric.label)
        for row in layout.rows:
            runs = of_row(own, row.name)
            metric = _curve(runs, name)
            if metric is not None:
                found[row.label] = (metric, _curve(runs, LOSS))
        return found

    def draw(
        panel: "Axes", column: Column, lines: dict[str, tuple[Curve, Curve | None]]
    ) -> None:
        right = panel.twinx()
        right.spines["top"].set_visible(False)
        for label, (metric, loss) in lines.items():
            draw_band(panel, metric, label=label, style=styles[label])
            if loss is not None:
                colour, *_ = styles[label]
                right.plot(loss.x, loss.mean, color=colour, linewidth=0.7, alpha=0.7)
        right.set_yscale("log")
        panel.set_xlabel("epochs")
        panel.set_ylabel(f"on observe: {column.axis_label}")
        right.set_ylabel("cross-entropy on observe, in nats (thin)")

    what = "metric and loss of observe in training\nbands: {spread}"
    return draw_panels(layout, records, block, read=read, draw=draw, what=what)


def _curve(runs: Sequence[RunRecord], name: str) -> Curve | None:
    """Return a noted line, its mean over runs; None if no run has it."""
    lines = [run.notes[name] for run in runs if run.notes.get(name)]
    if not lines:
        return None
    columns = list(zip(*lines, strict=True))
    return Curve(
        tuple(range(1, len(columns) + 1)),
        tuple(stats.mean(values) or 0.0 for values in columns),
        tuple(stats.sample_std(values) or 0.0 for values in columns),
    )
