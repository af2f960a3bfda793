"""Records to figures: pure functions, deterministic, colour-blind safe.

Every function returns a matplotlib figure, or None where the records hold nothing to
show; `to_png` encodes it without anything that changes from call to call.
"""

import io
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from benchmarks import stats
from benchmarks.cells import note_value, replicate_mean
from benchmarks.curves import Curve, budget_curve, curve, of_arm
from benchmarks.layout import Block, Column, TableLayout, split_budget
from benchmarks.records import RunRecord, sort_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
PANEL_INCHES = (4.2, 3.2)
PANELS_PER_LINE = 3
# Okabe and Ito's palette: told apart with every common colour vision deficiency.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
LINES = ("-", "--", ":", "-.")


def draw_all(layout: TableLayout, records: Sequence[RunRecord]) -> "dict[str, Figure]":
    """Return every figure the records have something for, by file name without suffix.

    Args:
        layout: the experiment.
        records: all its records; only finished ones are drawn.
    """
    kinds = {
        "cost_curves": cost_curves,
        "query_curves": query_curves,
        "predicted_against_true": predicted_against_true,
        "embedding_tsne": embedding_tsne,
        "ablation_scatter": ablation_scatter,
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
    """Draw the test metric along fine-tuning: mean and one deviation over replicates.

    One panel per column, one line per arm whose trace has more than one step.
    """
    panels = {
        column: _arm_curves(layout, records, (block, column), axis="step")
        for column in layout.columns
    }
    figure, axes = _panels({key: value for key, value in panels.items() if value})
    for column, panel in axes.items():
        for arm, line in panels[column].items():
            _draw_band(panel, line, arm, _style(layout, arm))
        panel.set_xlabel("fine-tuning steps")
        panel.set_ylabel(_metric_label(column, "test"))
    return _finish(figure, axes, f"{layout.title}, {block.label}: along fine-tuning")


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw observe (thin) and test (thick) metric over queries, logarithmic.

    One panel per column, one pair of lines per arm that spends queries.
    """
    panels = {}
    for column in layout.columns:
        place = (block, column)
        tests = _arm_curves(layout, records, place, axis="queries")
        seen = _arm_curves(layout, records, place, axis="queries", split="observe")
        if tests:
            panels[column] = tests, seen
    figure, axes = _panels(panels)
    for column, panel in axes.items():
        tests, seen = panels[column]
        for arm, line in tests.items():
            _draw_band(panel, line, arm, _style(layout, arm))
        for arm, line in seen.items():
            colour, dash = _style(layout, arm)
            panel.plot(line.x, line.mean, color=colour, linestyle=dash, linewidth=0.7)
        panel.set_xscale("log")
        panel.set_xlabel("metric queries (thick: test, thin: observe)")
        panel.set_ylabel(_metric_label(column, "native"))
    return _finish(figure, axes, f"{layout.title}, {block.label}: over metric queries")


def predicted_against_true(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what value functions predict against the metric on held-out trajectories.

    Reads the notes `health_predicted` and `health_true`, lists of equal length; one
    panel per column, one colour per row, all replicates.
    """
    names = ("health_true", "health_predicted")
    panels = {}
    for column in layout.columns:
        found = _own(records, block, column)
        points = {
            row.label: _paired_notes([r for r in found if r.spec.row == row.name], names)
            for row in layout.rows
        }
        points = {label: pairs for label, pairs in points.items() if pairs}
        if points:
            panels[column] = points
    figure, axes = _panels(panels)
    for column, panel in axes.items():
        for label, pairs in panels[column].items():
            true, predicted = zip(*pairs, strict=True)
            colour = _style(layout, label)[0]
            panel.scatter(true, predicted, s=6, alpha=0.5, color=colour, label=label)
        panel.axline((true[0], true[0]), slope=1, color="0.6", linewidth=0.8, zorder=0)
        panel.set_xlabel(f"true {column.metric} as a cost")
        panel.set_ylabel("predicted cost")
    return _finish(figure, axes, f"{layout.title}, {block.label}: the value function")


def embedding_tsne(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the embedding of the value function in two dimensions, coloured by cost.

    Reads the notes `embedding_x`, `embedding_y`, `embedding_cost`, lists of equal
    length, of the first row and replicate of each column that has them.
    """
    names = ("embedding_x", "embedding_y", "embedding_cost")
    panels = {}
    for column in layout.columns:
        ordered = sorted(
            sort_records(_own(records, block, column)),
            key=lambda record: layout.row_names.index(record.spec.row),
        )
        clouds = [_paired_notes([record], names) for record in ordered]
        cloud = next((points for points in clouds if points), None)
        if cloud:
            panels[column] = cloud
    figure, axes = _panels(panels)
    for column, panel in axes.items():
        x, y, cost = zip(*panels[column], strict=True)
        dots = panel.scatter(x, y, c=cost, s=8, cmap="cividis")
        bar = panel.figure.colorbar(dots, ax=panel)
        bar.set_label(f"{column.metric} as a cost")
        panel.set_xlabel("t-SNE 1 (no unit)")
        panel.set_ylabel("t-SNE 2 (no unit)")
    return _finish(figure, axes, f"{layout.title}, {block.label}: embedding", bare=True)


def ablation_scatter(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how well the value function predicts against the final metric, by row.

    Reads the note `value_error`, or where a column has none `spearman`.

    Source: Huang et al., CVPR 2021, Fig. 3(b).
    """
    panels = {}
    for column in layout.columns:
        own = _own(records, block, column)
        for note in ("value_error", "spearman"):
            points = _ablation_points(layout, own, note)
            if len(points) > 1:
                panels[column] = note, points
                break
    figure, axes = _panels(panels)
    for column, panel in axes.items():
        note, points = panels[column]
        for label, (x, y, spread) in points.items():
            colour = _style(layout, label)[0]
            panel.errorbar(
                x, y, yerr=spread, fmt="o", color=colour, label=label, capsize=2
            )
        worded = {"value_error": "error of the value function (cost)"}
        panel.set_xlabel(worded.get(note, "Spearman correlation with the metric"))
        panel.set_ylabel(_metric_label(column, "test"))
    return _finish(figure, axes, f"{layout.title}, {block.label}: ablation")


def to_png(figure: "Figure") -> bytes:
    """Return a figure as PNG bytes: the same figure, the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    # No version of the software among the metadata: it is no part of the result.
    figure.savefig(
        buffer,
        format="png",
        dpi=DPI,
        metadata={"Software": None},
        bbox_inches="tight",
    )
    return buffer.getvalue()


def _own(
    records: Sequence[RunRecord], block: Block, column: Column
) -> list[RunRecord]:
    place = (block.name, column.name)
    return [
        record
        for record in records
        if record.finished and (record.spec.block, record.spec.column) == place
    ]


def _arm_curves(
    layout: TableLayout,
    records: Sequence[RunRecord],
    place: tuple[Block, Column],
    *,
    axis: str,
    split: str = "test",
) -> dict[str, Curve]:
    """Return the curves of a panel by label of their arm."""
    own = _own(records, *place)
    curves = {}
    for arm, label in _arms(layout).items():
        plain = [r for r in of_arm(own, arm) if split_budget(r.spec.row)[1] is None]
        line = curve(plain, axis=axis, split=split)
        if axis == "queries":
            line = budget_curve(own, arm, split) or line
            line = _positive(line)
        if line is not None:
            curves[label] = line
    return curves


def _positive(line: Curve | None) -> Curve | None:
    """Drop the point at 0 queries, which a logarithmic axis cannot show."""
    if line is None:
        return None
    keep = [index for index, x in enumerate(line.x) if x > 0]
    if len(keep) < 2:
        return None
    parts = (tuple(part[i] for i in keep) for part in (line.x, line.mean, line.std))
    return Curve(*parts)
