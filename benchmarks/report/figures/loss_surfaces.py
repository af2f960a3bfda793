"""Loss surfaces of networks in training, and how far from convex they are.

Source: Huang et al., ICML 2019, Fig. 4: the mean Gaussian curvature of a surface along
filter-normalised directions (Li et al., 2018). The share of points where the surface
bends downwards, and how much it does, are ours.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.report.curves import Curve
from benchmarks.report.figures.panels import (
    draw_band,
    finish,
    make_free_panels,
    name_line,
    row_styles,
    spread_over,
    titled,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.notes import (
    SURFACE_EPOCHS,
    SURFACE_RADIUS,
    SURFACE_SIDE,
    SURFACES,
)
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

INCHES = 1.7
"""Side of a surface."""
LEVELS = 12
LEAST = 1e-5
"""Losses below are drawn like this one."""
SHAPES = {
    "curvature": "mean Gaussian curvature",
    "negative": "share of points that bend downwards",
    "ratio": "greatest bend downwards over greatest bend, mean",
}
"""What is measured of a surface, and axes."""


def shape_of(losses: "NDArray") -> dict[str, float]:
    """Return the numbers of `SHAPES` for the graph of losses on a square grid.

    Derivatives are central differences, at all points but those of the edge. The ratio
    is that of the least eigenvalue of the Hessian matrix to the greatest absolute one:
    0 where the surface is convex, 1 where it bends downwards most.

    Args:
        losses: shape [side, side], over [-radius, radius] along each direction.
    """
    import numpy as np

    step = 2 * SURFACE_RADIUS / (len(losses) - 1)
    inner = losses[1:-1, 1:-1]
    x = (losses[2:, 1:-1] - losses[:-2, 1:-1]) / (2 * step)
    y = (losses[1:-1, 2:] - losses[1:-1, :-2]) / (2 * step)
    xx = (losses[2:, 1:-1] - 2 * inner + losses[:-2, 1:-1]) / step**2
    yy = (losses[1:-1, 2:] - 2 * inner + losses[1:-1, :-2]) / step**2
    corners = losses[2:, 2:] - losses[2:, :-2] - losses[:-2, 2:] + losses[:-2, :-2]
    xy = corners / (4 * step**2)
    determinant, middle = xx * yy - xy**2, (xx + yy) / 2
    spread = np.sqrt(np.maximum(middle**2 - determinant, 0))
    least, greatest = middle - spread, middle + spread
    size = np.maximum(np.abs(least), np.abs(greatest))
    return {
        "curvature": float((determinant / (1 + x**2 + y**2) ** 2).mean()),
        "negative": float((least < 0).mean()),
        "ratio": float((np.maximum(-least, 0) / np.maximum(size, 1e-12)).mean()),
    }


def _surfaces(record: RunRecord) -> "dict[int, NDArray]":
    """Return the surfaces of a training by the epochs after which they were drawn."""
    import numpy as np

    flat = np.array(record.notes[SURFACES]).reshape(-1, SURFACE_SIDE, SURFACE_SIDE)
    return {
        round(epoch): losses
        for epoch, losses in zip(record.notes[SURFACE_EPOCHS], flat, strict=True)
    }


def _drawn(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> dict[str, list[RunRecord]]:
    """Return the records with surfaces of each row by label, in replicate order."""
    own = [
        record
        for record in sorted(records, key=lambda record: record.spec.replicate)
        if record.spec.block == block.name and record.notes.get(SURFACES)
    ]
    found = {
        row.label: [record for record in own if record.spec.row == row.name]
        for row in layout.rows
    }
    return {label: runs for label, runs in found.items() if runs}


def loss_surfaces(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the log of cross-entropy around a network of every row, over epochs."""
    drawn = {
        label: _surfaces(first)
        for label, (first, *_) in _drawn(layout, records, block).items()
    }
    if not drawn:
        return None
    import numpy as np
    from matplotlib.figure import Figure

    most = max(map(len, drawn.values()))
    size = (INCHES * most + 1.2, (INCHES + 0.35) * len(drawn) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(drawn), most, squeeze=False)
    logs = {
        label: {epoch: np.log(np.maximum(z, LEAST)) for epoch, z in own.items()}
        for label, own in drawn.items()
    }
    every = np.stack([z for own in logs.values() for z in own.values()])
    levels = np.linspace(every.min(), every.max(), LEVELS + 1)
    ticks = np.linspace(-SURFACE_RADIUS, SURFACE_RADIUS, SURFACE_SIDE)
    for line, (label, own) in zip(axes, logs.items(), strict=True):
        for panel, (epoch, z) in zip(line, own.items(), strict=False):
            filled = panel.contourf(ticks, ticks, z.T, levels, cmap="viridis")
            panel.set_title(f"epoch {epoch}", fontsize="small")
        for panel in line:
            panel.set(xticks=[], yticks=[], aspect="equal")
        name_line(line[0], label)
    figure.colorbar(filled, ax=axes, shrink=0.8, label="log of cross-entropy")
    return titled(
        figure,
        f"{layout.title} ({block.label}):\nloss surfaces in training along two "
        "filter-normalised directions, first replicate.\nMiddle: the network itself. "
        "Edges: filters are changed by their own norm.",
        "medium",
    )


def surface_curvature(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how far from convex the loss surfaces of every row are, over epochs."""
    drawn = _drawn(layout, records, block)
    if not drawn:
        return None
    figure, panels = make_free_panels(len(SHAPES))
    styles = row_styles(layout)
    for label, runs in drawn.items():
        shapes = [
            {epoch: shape_of(losses) for epoch, losses in _surfaces(run).items()}
            for run in runs
        ]
        for panel, name in zip(panels, SHAPES, strict=True):
            draw_band(panel, _line(shapes, name), label=label, style=styles[label])
    for panel, axis in zip(panels, SHAPES.values(), strict=True):
        panel.set(xlabel="epochs", ylabel=axis)
    spread = spread_over(layout, records, block)
    what = f"loss surfaces along filter-normalised directions\nbands: {spread}"
    return finish(figure, layout, block, what)


def _line(shapes: Sequence[Mapping[int, Mapping[str, float]]], name: str) -> Curve:
    return Curve.of(
        {epoch: [own[epoch][name] for own in shapes] for epoch in shapes[0]}
    )
