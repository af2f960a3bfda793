"""Records to figures: pure functions, deterministic, colour-blind safe.

Each takes the layout of an experiment, all its records and the block to draw, and
returns a matplotlib figure with one panel per column that has something to show, or
None where none has. Only finished runs are drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks import stats
from benchmarks.curves import Curve, budget_curve, curve, finals, of_arm, of_row
from benchmarks.figures_ablation import ablation_rows, ablation_scatter
from benchmarks.figures_mismatch import gain_over_mismatch
from benchmarks.layout import Block, Column, TableLayout, split_budget
from benchmarks.panels import (
    COLOURS,
    arm_styles,
    cost_label,
    draw_band,
    draw_panels,
    metric_label,
)
from benchmarks.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GUIDED_ROW = "metricopt"
PATHS = (
    ("path_loss_loss", "loss, loss only", COLOURS[1], "--"),
    ("path_guided_loss", "loss, with the value function", COLOURS[0], "--"),
    ("path_loss_cost", "cost, loss only", COLOURS[1], "-"),
    ("path_guided_cost", "cost, with the value function", COLOURS[0], "-"),
)
"""Notes of Fig. 1 with label, colour and dash."""

Lines = dict[str, Curve]
Points = list[tuple[float, ...]]


def draw_all(layout: TableLayout, records: Sequence[RunRecord]) -> "dict[str, Figure]":
    """Return every figure there is something for, by name `<kind>-<block>`."""
    kinds = {
        "cost_curves": cost_curves,
        "query_curves": query_curves,
        "loss_and_metric": loss_and_metric,
        "predicted_against_true": predicted_against_true,
        "embedding_tsne": embedding_tsne,
        "ablation_scatter": ablation_scatter,
        "ablation_rows": ablation_rows,
        "gain_over_mismatch": gain_over_mismatch,
    }
    figures = {}
    for kind, draw in kinds.items():
        for block in layout.blocks:
            figure = draw(layout, records, block)
            if figure is not None:
                figures[f"{kind}-{block.name}"] = figure
    return figures


def cost_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the test metric along fine-tuning: mean and one deviation.

    One line per arm whose trace has more than one step; of many ablated rows those
    the layout singles out, beside loss-only fine-tuning.
    """
    styles = arm_styles(layout)
    chosen = (layout.loss_only_row, *(layout.cloud_rows or layout.arms))

    def read(own: list[RunRecord]) -> Lines:
        lines = {
            label: curve(
                _unbudgeted(own, arm), axis="step", split="test", unit=layout.unit
            )
            for arm, label in layout.arms.items()
            if arm in chosen
        }
        return {label: line for label, line in lines.items() if line}

    def draw(panel: "Axes", column: Column, lines: Lines) -> None:
        for label, line in lines.items():
            draw_band(panel, line, label=label, style=styles[label])
        panel.set_xlabel("fine-tuning steps (metric on test)")
        panel.set_ylabel(metric_label(column))

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="along fine-tuning"
    )


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw test (thick, with spread) and observe (thin) metric over queries.

    One pair of lines per arm that spends queries, or of points where it is known at its
    end alone; the axis of queries is logarithmic. None where the layout compares no
    budgets.
    """
    if not layout.query_budgets:
        return None
    styles = arm_styles(layout)

    def read(own: list[RunRecord]) -> dict[tuple[str, str], Curve]:
        lines = {
            (label, split): _query_curve(own, arm, split, layout.unit)
            for arm, label in layout.compared_arms.items()
            for split in ("test", "observe")
        }
        return {key: line for key, line in lines.items() if line}

    def draw(
        panel: "Axes", column: Column, lines: dict[tuple[str, str], Curve]
    ) -> None:
        for (label, split), line in lines.items():
            colour, dash, mark = styles[label]
            if split == "observe":
                thin: dict[str, Any] = {"ls": dash, "lw": 0.7, "mfc": "none"}
                alone = mark if len(line.x) == 1 else ""
                panel.plot(line.x, line.mean, color=colour, marker=alone, **thin)
            elif len(line.x) == 1:
                end = (line.x, line.mean, line.std)
                panel.errorbar(*end, fmt=mark, color=colour, label=label, capsize=2)
            else:
                draw_band(panel, line, label=label, style=styles[label])
        panel.set_xscale("log")
        panel.set_xlabel("metric queries (thick: test, thin: observe)")
        panel.set_ylabel(metric_label(column))

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="over metric queries"
    )


def loss_and_metric(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw loss and metric along fine-tuning, with the value function and without.

    Reads the notes `path_steps`, `path_loss_loss`, `path_loss_cost`,
    `path_guided_loss` and `path_guided_cost` of the row `metricopt`, or of the first
    ablated row, lists of equal length. The left axis is the loss, the right one the
    cost on observe.

    Source: Huang et al., CVPR 2021, Fig. 1. Differs: means over trajectories.
    """
    names = ("path_steps", *(name for name, *_ in PATHS))

    def read(own: list[RunRecord]) -> Points:
        return _first_points(of_row(own, _guided_row(layout)), names)

    def draw(panel: "Axes", column: Column, points: Points) -> None:
        right = panel.twinx()
        right.spines["top"].set_visible(False)
        steps, *lines = zip(*points, strict=True)
        for (name, label, colour, dash), line in zip(PATHS, lines, strict=True):
            side = panel if name.endswith("loss") else right
            side.plot(steps, line, color=colour, linestyle=dash, label=label)
        panel.set_xlabel("fine-tuning steps")
        panel.set_ylabel("training loss (dashed)")
        right.set_ylabel(f"{cost_label(column)}, on observe (solid)")

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="loss and metric"
    )


def predicted_against_true(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what value functions predict against the metric on held-out trajectories.

    Reads the notes `health_true` and `health_predicted`, lists of equal length; one
    colour per row, all replicates that tell. The grey line is a perfect prediction;
    hollow points lie beyond the panel.

    Source: Huang et al., CVPR 2021, Fig. 3(a).
    """
    styles = arm_styles(layout)
    names = ("health_true", "health_predicted")

    def read(own: list[RunRecord]) -> dict[str, Points]:
        clouds = {
            row.label: _points(of_row(own, row.name), names)
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
        panel.set_xlabel(f"true {cost_label(column)}")
        panel.set_ylabel("predicted (hollow: beyond)")

    return draw_panels(
        layout, records, block, read=read, draw=draw, what="the value function"
    )


def embedding_tsne(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the embedding of a value function in two dimensions, coloured by cost.

    Reads the notes `embedding_x`, `embedding_y` and `embedding_cost`, lists of equal
    length, of the first value function of each column: that of the row `metricopt`, or
    of the first ablated row.

    Source: Huang et al., CVPR 2021, Fig. 2(c).
    """
    names = ("embedding_x", "embedding_y", "embedding_cost")

    def read(own: list[RunRecord]) -> Points:
        return _first_points(of_row(own, _guided_row(layout)), names)

    def draw(panel: "Axes", column: Column, points: Points) -> None:
        x, y, cost = zip(*points, strict=True)
        dots = panel.scatter(x, y, c=cost, s=8, cmap="cividis")
        bar = panel.figure.colorbar(dots, ax=panel)
        bar.set_label(cost_label(column))
        panel.set_xlabel("t-SNE, first axis")
        panel.set_ylabel("t-SNE, second axis")

    return draw_panels(layout, records, block, read=read, draw=draw, what="embedding")


def _unbudgeted(records: Sequence[RunRecord], arm: str) -> list[RunRecord]:
    runs = of_arm(records, arm)
    return [record for record in runs if split_budget(record.spec.row)[1] is None]


def _query_curve(
    records: Sequence[RunRecord], arm: str, split: str, unit: str
) -> Curve | None:
    """Return a curve without its point at 0 queries, which no log axis can show.

    An arm that is known at its end alone has one point.
    """
    runs = _unbudgeted(records, arm)
    line = (
        budget_curve(records, arm, split, unit)
        or curve(runs, axis="queries", split=split, unit=unit)
        or _end(runs, split, unit)
    )
    if line is None:
        return None
    keep = [index for index, x in enumerate(line.x) if x > 0]
    parts = [tuple(part[i] for i in keep) for part in (line.x, line.mean, line.std)]
    return Curve(*parts) if keep else None


def _end(records: Sequence[RunRecord], split: str, unit: str) -> Curve | None:
    """Return the final values as a curve of one point, None if there are none."""
    values = finals(records, split, unit)
    queries = stats.mean([record.queries for record in records])
    centre, spread = stats.mean(values), stats.sample_std(values)
    if queries is None or centre is None:
        return None
    return Curve((queries,), (centre,), (spread or 0.0,))


def _points(records: Sequence[RunRecord], names: Sequence[str]) -> Points:
    """Return the complete tuples of list-valued notes of equal length."""
    points: Points = []
    for record in records:
        lists = [record.notes.get(name) for name in names]
        if all(isinstance(values, list) for values in lists):
            tuples = zip(*lists, strict=True)
            points += [item for item in tuples if None not in item]
    return points


def _axes(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _guided_row(layout: TableLayout) -> str:
    """Return the row whose value function stands for all."""
    return layout.ablation_rows[0] if layout.ablation_rows else GUIDED_ROW


def _first_points(records: Sequence[RunRecord], names: Sequence[str]) -> Points:
    """Return the points of the first record that has some."""
    clouds = (_points([record], names) for record in records)
    return next((cloud for cloud in clouds if cloud), [])
