"""Slopes of losses of classes in training, by how sure the network is."""

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from benchmarks.report.figures.panels import (
    PANEL_INCHES,
    PANELS_PER_LINE,
    make_panel_rows,
    titled,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

STEPS, BOUNDS, SLOPES = "phi_steps", "slope_bounds", "slopes"
"""Notes: steps [s]; probabilities of the true class where parts end [m - 1]; and mean
slope and share of examples in each part then, flat [s * m * 2]."""


def loss_slopes(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw how steep the losses of every row are, one line a time; a panel a row."""
    own = [r for r in records if r.spec.block == block.name and r.notes.get(SLOPES)]
    found = {
        row.label: [record for record in own if record.spec.row == row.name]
        for row in layout.rows
    }
    shown = {label: runs for label, runs in found.items() if runs}
    if not shown:
        return None
    columns = min(len(shown), PANELS_PER_LINE)
    lines = -(-len(shown) // columns)
    figure, rows = make_panel_rows(lines, columns, PANEL_INCHES)
    panels = list(chain.from_iterable(rows))
    for panel, (label, runs) in zip(panels, shown.items(), strict=False):
        _draw(panel, label, runs)
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    place = "outside right upper"
    figure.legend(handles, labels, loc=place, fontsize="small", frameon=False)
    return titled(
        figure,
        f"{layout.title} ({block.label}):\nmean slope of the loss with respect to the "
        "logit of the true class, on observed images,\nby their probability of the "
        "true class; mean over images of all replicates.\nDashed: cross-entropy in the "
        "middle of each part.",
        "medium",
    )


def _draw(panel: "Axes", label: str, runs: Sequence[RunRecord]) -> None:
    import matplotlib
    import numpy as np

    steps, bounds = runs[0].notes[STEPS], [0.0, *runs[0].notes[BOUNDS], 1.0]
    parts = np.arange(len(bounds) - 1)
    every = np.array([run.notes[SLOPES] for run in runs])
    means = _means(every.reshape(len(runs), len(steps), len(parts), 2))
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(steps)))
    for step, line, colour in zip(steps, means, colours, strict=True):
        panel.plot(
            parts, line, "o-", color=colour, ms=3, lw=1, label=f"step {step:.0f}"
        )
    middles = [(low + high) / 2 for low, high in pairwise(bounds)]
    panel.plot(parts, 1 - np.array(middles), "k--", lw=0.8)
    names = [f"{low:g}-{high:g}" for low, high in pairwise(bounds)]
    panel.set_xticks(parts, names, rotation=60, fontsize="x-small")
    panel.set_title(label, fontsize="small", loc="left")
    panel.set(xlabel="probability of the true class", ylabel="slope")


def _means(noted: "NDArray") -> "NDArray":
    """Return the mean slope of each time and part, NaN where no example is.

    Args:
        noted: slopes and shares, shape [r, s, m, 2].
    """
    import numpy as np

    slopes, shares = noted[..., 0], noted[..., 1]
    held = shares.sum(0)
    total = (slopes * shares).sum(0)
    return np.divide(total, held, out=np.full_like(total, np.nan), where=held > 0)
