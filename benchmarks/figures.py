"""Records to figures: pure functions, deterministic, colour-blind safe.

Each takes the layout of an experiment, all its records and the block to draw, and
returns a matplotlib figure with one panel per column that has something to show, or
None where none has. Only finished runs are drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import stats
from benchmarks.cells import note_value, replicate_mean
from benchmarks.curves import Curve, budget_curve, curve, of_arm
from benchmarks.layout import Block, Column, TableLayout, split_budget
from benchmarks.panels import (
    arm_styles,
    draw_band,
    finish,
    make_panels,
    metric_label,
)
from benchmarks.records import RunRecord, sort_records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_all(layout: TableLayout, records: Sequence[RunRecord]) -> "dict[str, Figure]":
    """Return every figure there is something for, by name `<kind>-<block>`."""
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

    One line per arm whose trace has more than one step.
    """
    found = {}
    for column in layout.columns:
        own = _own(records, block, column)
        lines = {
            label: curve(_unbudgeted(own, arm), axis="step", split="test")
            for arm, label in layout.arms.items()
        }
        found[column] = {label: line for label, line in lines.items() if line}
    panels = make_panels(column for column, lines in found.items() if lines)
    if panels is None:
        return None
    figure, axes = panels
    styles = arm_styles(layout)
    for column, panel in axes.items():
        for label, line in found[column].items():
            draw_band(panel, line, label=label, style=styles[label])
        panel.set_xlabel("fine-tuning steps (metric on test)")
        panel.set_ylabel(metric_label(column))
    return finish(figure, f"{layout.title} ({block.label}): along fine-tuning")


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw test (thick, with spread) and observe (thin) metric over queries.

    One pair of lines per arm that spends queries; the axis of queries is logarithmic.
    """
    found = {}
    for column in layout.columns:
        own = _own(records, block, column)
        lines = {
            (label, split): _query_curve(own, arm, split)
            for arm, label in layout.compared_arms.items()
            for split in ("test", "observe")
        }
        found[column] = {key: line for key, line in lines.items() if line}
    panels = make_panels(column for column, lines in found.items() if lines)
    if panels is None:
        return None
    figure, axes = panels
    styles = arm_styles(layout)
    for column, panel in axes.items():
        for (label, split), line in found[column].items():
            if split == "test":
                draw_band(panel, line, label=label, style=styles[label])
            else:
                colour, dash, _ = styles[label]
                panel.plot(line.x, line.mean, color=colour, ls=dash, linewidth=0.7)
        panel.set_xscale("log")
        panel.set_xlabel("metric queries (thick: test, thin: observe)")
        panel.set_ylabel(metric_label(column))
    return finish(figure, f"{layout.title} ({block.label}): over metric queries")


def predicted_against_true(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what value functions predict against the metric on held-out trajectories.

    Reads the notes `health_true` and `health_predicted`, lists of equal length; one
    colour per row, all replicates. The grey line is a perfect prediction.
    """
    names = ("health_true", "health_predicted")
    found = {}
    for column in layout.columns:
        own = _own(records, block, column)
        clouds = {
            row.label: _points(_of_row(own, row.name), names) for row in layout.rows
        }
        found[column] = {label: cloud for label, cloud in clouds.items() if cloud}
    panels = make_panels(column for column, clouds in found.items() if clouds)
    if panels is None:
        return None
    figure, axes = panels
    styles = arm_styles(layout)
    for column, panel in axes.items():
        truths = [true for cloud in found[column].values() for true, _ in cloud]
        # One wild value function must not squeeze the others into a line.
        margin = max(truths) - min(truths)
        low, high = min(truths) - margin, max(truths) + margin
        for label, cloud in found[column].items():
            true, predicted = zip(*cloud, strict=True)
            shown = [min(max(value, low), high) for value in predicted]
            colour, _, marker = styles[label]
            panel.scatter(
                true, shown, s=8, alpha=0.5, c=colour, marker=marker, label=label
            )
            panel.axline((true[0], true[0]), slope=1, color="0.6", linewidth=0.8)
        panel.set_xlabel(f"true {column.metric}, as a cost")
        panel.set_ylabel("predicted cost, cut at the panel's edge")
    return finish(figure, f"{layout.title} ({block.label}): the value function")


def embedding_tsne(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the embedding of a value function in two dimensions, coloured by cost.

    Reads the notes `embedding_x`, `embedding_y` and `embedding_cost`, lists of equal
    length, of the value function of each column that ranks held-out phi best.

    Source: Huang et al., CVPR 2021, Fig. 2(c).
    """
    names = ("embedding_x", "embedding_y", "embedding_cost")
    found = {}
    for column in layout.columns:
        own = sort_records(_own(records, block, column))
        own.sort(key=lambda record: -(note_value(record, "spearman") or -1.0))
        clouds = (_points([record], names) for record in own)
        found[column] = next((cloud for cloud in clouds if cloud), [])
    panels = make_panels(column for column, cloud in found.items() if cloud)
    if panels is None:
        return None
    figure, axes = panels
    for column, panel in axes.items():
        x, y, cost = zip(*found[column], strict=True)
        dots = panel.scatter(x, y, c=cost, s=8, cmap="cividis")
        bar = figure.colorbar(dots, ax=panel)
        bar.set_label(f"{column.metric}, as a cost")
        panel.set_xlabel("t-SNE, first axis")
        panel.set_ylabel("t-SNE, second axis")
    return finish(figure, f"{layout.title} ({block.label}): embedding")


def ablation_scatter(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how well each ablated value function predicts against the final metric.

    Reads the note `value_error`, or in columns where no row has it `spearman`.

    Source: Huang et al., CVPR 2021, Fig. 3(b).
    """
    worded = {
        "value_error": "error of the value function, as a cost",
        "spearman": "Spearman correlation of the value function",
    }
    found = {}
    for column in layout.columns:
        own = _own(records, block, column)
        for note in worded:
            rows = _ablation(layout, own, note)
            if column not in found and len(rows) > 1:
                found[column] = note, rows
    panels = make_panels(found)
    if panels is None:
        return None
    figure, axes = panels
    styles = arm_styles(layout)
    for column, panel in axes.items():
        note, rows = found[column]
        for label, (x, y, spread) in rows.items():
            colour, _, marker = styles[label]
            panel.errorbar(
                x, y, spread, fmt=marker, color=colour, label=label, capsize=2
            )
        if note == "value_error":
            panel.set_xscale("log")
        panel.set_xlabel(worded[note])
        panel.set_ylabel(metric_label(column))
    return finish(figure, f"{layout.title} ({block.label}): ablation")


def _own(records: Sequence[RunRecord], block: Block, column: Column) -> list[RunRecord]:
    place = (block.name, column.name)
    return [
        record
        for record in records
        if record.finished and (record.spec.block, record.spec.column) == place
    ]


def _of_row(records: Sequence[RunRecord], row: str) -> list[RunRecord]:
    return sort_records(record for record in records if record.spec.row == row)


def _unbudgeted(records: Sequence[RunRecord], arm: str) -> list[RunRecord]:
    runs = of_arm(records, arm)
    return [record for record in runs if split_budget(record.spec.row)[1] is None]


def _query_curve(records: Sequence[RunRecord], arm: str, split: str) -> Curve | None:
    """Return a curve without its point at 0 queries, which no log axis can show."""
    line = budget_curve(records, arm, split)
    if line is None:
        line = curve(_unbudgeted(records, arm), axis="queries", split=split)
    if line is None:
        return None
    keep = [index for index, x in enumerate(line.x) if x > 0]
    parts = [tuple(part[i] for i in keep) for part in (line.x, line.mean, line.std)]
    return Curve(*parts) if len(keep) > 1 else None


def _points(
    records: Sequence[RunRecord], names: Sequence[str]
) -> list[tuple[float, ...]]:
    """Return the complete tuples of list-valued notes of equal length."""
    points: list[tuple[float, ...]] = []
    for record in records:
        lists = [record.notes.get(name) for name in names]
        if all(isinstance(values, list) for values in lists):
            tuples = zip(*lists, strict=True)
            points += [item for item in tuples if None not in item]
    return points


def _ablation(
    layout: TableLayout, records: Sequence[RunRecord], note: str
) -> dict[str, tuple[float, float, float]]:
    """Return (note, final metric, its deviation) by label of the ablation rows."""
    points = {}
    for row in layout.rows:
        own = _of_row(records, row.name) if row.name in layout.ablation_rows else []
        finals = [replicate_mean(record.test) for record in own]
        found = [note_value(record, note) for record in own]
        x = stats.mean([value for value in found if value is not None])
        y = stats.mean([value for value in finals if value is not None])
        if x is not None and y is not None:
            spread = stats.sample_std([v for v in finals if v is not None])
            points[row.label] = x, y, spread or 0.0
    return points
