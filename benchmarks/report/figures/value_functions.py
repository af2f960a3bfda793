"""What value functions know: along fine-tuning, on held-out points, in a plane."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import of_row
from benchmarks.report.figures.panels import COLOURS, draw_panels, row_styles
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


METRICOPT_ROW = "metricopt"

Points = list[tuple[float, ...]]


def noted_points(records: Sequence[RunRecord], names: Sequence[str]) -> Points:
    """Return the complete tuples of list-valued notes of equal length."""
    points: Points = []
    for record in records:
        lists = [record.notes.get(name) for name in names]
        if all(isinstance(values, list) for values in lists):
            tuples = zip(*lists, strict=True)
            points += [item for item in tuples if None not in item]
    return points


def first_points(
    layout: TableLayout, records: Sequence[RunRecord], names: Sequence[str]
) -> Points:
    """Return the points of the first value function that has some.

    Taken are those of the first ablated row, or of the row `metricopt` if the layout
    has no ablation.
    """
    row = layout.ablation_rows[0] if layout.ablation_rows else METRICOPT_ROW
    clouds = (noted_points([record], names) for record in of_row(records, row))
    return next((cloud for cloud in clouds if cloud), [])


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


def predicted_against_true(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what value functions predict against the metric on held-out trajectories.

    Reads the notes `health_true` and `health_predicted`, lists of equal length. One
    colour per row, with all replicates that have these notes. The grey line is a
    perfect prediction; hollow points lie beyond the panel.

    Source: Huang et al., CVPR 2021, Fig. 3(a).
    """
    styles = row_styles(layout)
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
