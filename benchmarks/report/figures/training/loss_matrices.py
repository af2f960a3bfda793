"""The loss parameters between classes at several steps of a training: ALA's Phi."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    own = [record for record in records if record.spec.block == block.name]
    labels = {row.name: row.label for row in layout.rows}
    first: dict[str, RunRecord] = {}
    for record in sorted(own, key=lambda record: record.spec.replicate):
        if record.spec.row in labels and record.notes.get(STEPS):
            first.setdefault(record.spec.row, record)
    shown = [first[name] for name in labels if name in first]
    return _drawn(layout, shown, block, labels) if shown else None


def _drawn(
    layout: TableLayout,
    shown: Sequence[RunRecord],
    block: Block,
    labels: dict[str, str],
) -> "Figure":
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
        line[0].set_ylabel(labels[record.spec.row], fontsize="small")
        for panel in line[len(steps) :]:
            panel.set_axis_off()
    figure.colorbar(image, ax=axes, shrink=0.8, label="loss parameter")
    figure.suptitle(
        f"{layout.title} ({block.label}): loss parameters between classes in training, "
        "first replicate.\nRows: true class. Red: the loss rewards the probability of "
        "the class of the column. Blue: it penalises it.",
        fontsize="medium",
        x=0.01,
        ha="left",
    )
    return figure
