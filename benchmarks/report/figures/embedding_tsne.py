"""The embedding of a value function in two dimensions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.columns import Column
from benchmarks.report.figures.parts.panels import draw_panels
from benchmarks.report.figures.parts.points import Points, first_points
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def embedding_tsne(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the embedding of a value function in two dimensions, coloured by cost.

    Reads the notes `embedding_x`, `embedding_y` and `embedding_cost`, lists of equal
    length; see `first_points`.

    Source: Huang et al., CVPR 2021, Fig. 2(c).
    """
    names = ("embedding_x", "embedding_y", "embedding_cost")

    def read(own: list[RunRecord], reading: Reading) -> Points:
        return first_points(layout, own, names) if reading.is_aim_of(own) else []

    def draw(panel: "Axes", column: Column, points: Points) -> None:
        x, y, cost = zip(*points, strict=True)
        dots = panel.scatter(x, y, c=cost, s=8, cmap="cividis")
        bar = panel.figure.colorbar(dots, ax=panel)
        bar.set_label(column.cost_label)
        panel.set_xlabel("t-SNE, first axis")
        panel.set_ylabel("t-SNE, second axis")

    return draw_panels(layout, records, block, read=read, draw=draw, what="embedding")
