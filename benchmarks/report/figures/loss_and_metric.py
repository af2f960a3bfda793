"""Loss and metric along fine-tuning, with the value function and without."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.columns import Column
from benchmarks.report.figures.parts.looks import COLOURS
from benchmarks.report.figures.parts.panels import draw_panels
from benchmarks.report.figures.parts.points import Points, first_points
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PATHS = (
    ("path_loss_loss", "loss, loss only", COLOURS[1], "--"),
    ("path_guided_loss", "loss, with the value function", COLOURS[0], "--"),
    ("path_loss_cost", "cost, loss only", COLOURS[1], "-"),
    ("path_guided_cost", "cost, with the value function", COLOURS[0], "-"),
)
"""Notes of a record with label, colour and dash."""


def loss_and_metric(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw loss and metric along fine-tuning, with the value function and without.

    Reads the notes `path_steps`, `path_loss_loss`, `path_loss_cost`,
    `path_guided_loss` and `path_guided_cost`, lists of equal length; see
    `first_points`. The left axis is the loss, the right one the cost on observe.

    Source: Huang et al., CVPR 2021, Fig. 1. Differs: means over trajectories.
    """
    names = ("path_steps", *(name for name, *_ in PATHS))

    def read(own: list[RunRecord], reading: Reading) -> Points:
        return first_points(layout, own, names) if reading.is_aim_of(own) else []

    def draw(panel: "Axes", _: Column, points: Points) -> None:
        right = panel.twinx()
        right.spines["top"].set_visible(False)
        steps, *lines = zip(*points, strict=True)
        for (name, label, colour, dash), line in zip(PATHS, lines, strict=True):
            side = panel if name.endswith("loss") else right
            side.plot(steps, line, color=colour, linestyle=dash, label=label)
        panel.set_xlabel("fine-tuning steps")
        panel.set_ylabel("training loss (dashed)")
        right.set_ylabel("cost on observe (solid)")

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="loss and metric"
    )
