"""Networks that methods train: what they reached over its cost, and the way there."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import Curve, of_row
from benchmarks.report.figures.panels import (
    draw_band,
    draw_mark,
    draw_panels,
    finish,
    make_free_panels,
    make_single_panel,
    name_line,
    row_styles,
    spread_over,
    titled,
)
from benchmarks.report.layout import Block, TableLayout
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
    styles = row_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> dict[str, Point]:
        found = {}
        for row in layout.rows:
            runs = of_row(own, row.name)
            values = reading.all_finals(runs)
            # Nobody could pay for what reads the test split.
            if values and row.sees != "test":
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
    styles = row_styles(layout)

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


FITTED = {
    "course_train_loss": "cross-entropy on training images, in nats",
    "course_train_error": "error on training images",
    "course_mcr": "error on observe",
    "course_train_unlikely": "training images, p < .1 of the true class",
}
"""Notes with a number an epoch that tell optimisation from generalisation; axes."""
FITTED_ON_TRAIN = "course_train"
FEW = 8
"""Rows of a table that such a figure has room for."""


def optimization_and_generalization(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw loss and error on both splits over the epochs of a training.

    Source: Huang et al., ICML 2019, Fig. 3. Differs: on observe, as the test split is
    read once.
    """
    own = [record for record in records if record.spec.block == block.name]
    lines = {
        (row.label, name): curve
        for row in layout.rows
        for name in FITTED
        if (curve := _curve(of_row(own, row.name), name)) is not None
    }
    labels = {label for label, name in lines if name.startswith(FITTED_ON_TRAIN)}
    if len(labels) < 2 or len(layout.rows) > FEW:
        return None
    figure, panels = make_free_panels(len(FITTED))
    styles = row_styles(layout)
    for panel, (name, axis) in zip(panels, FITTED.items(), strict=True):
        for (label, noted), curve in lines.items():
            if noted == name and label in labels:
                draw_band(panel, curve, label=label, style=styles[label])
        panel.set(xlabel="epochs", ylabel=axis, yscale="log")
    spread = spread_over(layout, records, block)
    what = f"optimisation and generalisation in training\nbands: {spread}"
    return finish(figure, layout, block, what)


def _curve(runs: Sequence[RunRecord], name: str) -> Curve | None:
    """Return a noted line, its mean over runs; None if no run has it."""
    lines = [run.notes[name] for run in runs if run.notes.get(name)]
    if not lines:
        return None
    return Curve.of(dict(enumerate(zip(*lines, strict=True), start=1)))


STEPS, MATRICES = "phi_steps", "phi"
"""Notes: steps [s], and the matrices then, flat [s * C * C]."""
INCHES = 1.7
"""Side of a matrix."""


def loss_matrices(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the matrices of the first replicate of every row that notes some.

    Rows are true classes. Red: the loss rewards the probability of that class. Blue:
    it penalises it.
    """
    labels = {row.name: row.label for row in layout.rows}
    by_replicate = sorted(records, key=lambda record: record.spec.replicate)
    first = {
        record.spec.row: record
        for record in reversed(by_replicate)
        if record.spec.block == block.name and record.notes.get(STEPS)
    }
    shown = [first[name] for name in labels if name in first]
    if not shown:
        return None
    import numpy as np
    from matplotlib.figure import Figure

    most = max(len(record.notes[STEPS]) for record in shown)
    size = (INCHES * most + 1.0, (INCHES + 0.35) * len(shown) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(shown), most, squeeze=False)
    for line, record in zip(axes, shown, strict=True):
        steps, flat = record.notes[STEPS], record.notes[MATRICES]
        classes = math.isqrt(len(flat) // len(steps))
        matrices = np.array(flat).reshape(len(steps), classes, classes)
        for panel, step, matrix in zip(line, steps, matrices, strict=False):
            image = panel.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu_r")
            panel.set_title(f"step {step:.0f}", fontsize="small")
        for panel in line:
            panel.set(xticks=[], yticks=[])
        name_line(line[0], labels[record.spec.row])
        for panel in line[len(steps) :]:
            panel.set_axis_off()
    figure.colorbar(image, ax=axes, shrink=0.8, label="loss parameter")
    return titled(
        figure,
        f"{layout.title} ({block.label}): loss parameters between classes in training, "
        "first replicate.\nRows: true class. Red: the loss rewards the probability of "
        "the class of the column. Blue: it penalises it.",
        "medium",
    )


WEIGHT_STEPS, WEIGHTS = "weights_steps", "weights"
"""Notes: steps [s], and the weights of a loss then, flat [s * P]."""
HIGH = 2.4
"""Inches of a panel of weights."""


def loss_weights(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the weights of losses of distances, first replicate, one panel a row.

    Solid: those of distances within a class. Dashed: those between classes.
    """
    labels = {row.name: row.label for row in layout.rows}
    by_replicate = sorted(records, key=lambda record: record.spec.replicate)
    first = {
        record.spec.row: record
        for record in reversed(by_replicate)
        if record.spec.block == block.name and WEIGHT_STEPS in record.notes
    }
    shown = [first[name] for name in labels if name in first]
    if not shown:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, HIGH * len(shown)), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for panel, record in zip(panels, shown, strict=True):
        steps, flat = record.notes[WEIGHT_STEPS], record.notes[WEIGHTS]
        count = len(flat) // len(steps)
        for place in range(count):
            within = place < count // 2
            colour = f"C{place if within else place - count // 2}"
            panel.plot(steps, flat[place::count], colour, ls="-" if within else "--")
        panel.set_title(labels[record.spec.row], fontsize="small", loc="left")
        panel.set(xlabel="gradient steps", ylabel="weight")
    return titled(
        figure,
        f"{layout.title} ({block.label}):\nweights of the loss in training, first "
        "replicate.\nSolid: of distances within a class. Dashed: between classes.",
        "medium",
    )


LINES = {
    "rewards": "mean reward",
    "entropies": "entropy, in nats",
    "lowered": "numbers lowered, share",
    "raised": "numbers raised, share",
}
"""Notes with a number a decision, and their axes. A policy lowers and raises numbers
of the loss: of pairs of classes, or of distance functions."""
SMOOTHED = 10
"""Decisions that a moving mean is over."""


def policy_course(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what policies did: moving means over decisions, and over replicates."""
    own = [record for record in records if record.spec.block == block.name]
    found: dict[str, list[RunRecord]] = {}
    for row in layout.rows:
        runs = [r for r in own if r.spec.row == row.name and r.notes.get("rewards")]
        if runs:
            found[row.label] = runs
    if not found:
        return None
    figure, panel = make_single_panel()
    panel.remove()
    styles = row_styles(layout)
    for place, (name, axis) in enumerate(LINES.items(), 1):
        panel = figure.add_subplot(2, 2, place)
        panel.grid(alpha=0.25, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
        for label, runs in found.items():
            line = _smoothed([run.notes[name] for run in runs])
            colour, dash, _ = styles[label]
            panel.plot(line, color=colour, linestyle=dash, label=label)
        panel.set_ylabel(axis)
        if place > 2:
            panel.set_xlabel("decisions of the policy")
    what = f"the policy in training\nmoving means over {SMOOTHED} decisions"
    return finish(figure, layout, block, what)


def _smoothed(lines: Sequence[Sequence[float]]) -> list[float]:
    """Return the moving mean of the mean over several lines."""
    mean = [stats.mean(values) or 0.0 for values in zip(*lines, strict=False)]
    parts = (mean[max(0, at - SMOOTHED) : at] for at in range(1, len(mean) + 1))
    return [stats.mean(part) or 0.0 for part in parts]
