"""The section on the order of rows: ours beside the paper's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import Cell
from benchmarks.report.columns import NOTHING, REPLICATE
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.report.stats import ROUNDING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

ORDER = "## Order of rows"
ORDER_LEGEND = (
    "Whether rows stand in the order in which the paper has them, by means over the "
    "replicates that all of them have. `alike`: pairs of rows that the paper tells "
    "apart and that differ the same way here. `tau`: Kendall's tau-b of our means and "
    "the paper's numbers, 1 for the paper's order, -1 for its reverse. `95 % "
    "interval`: percentile bootstrap of tau, 2,000 samples of the replicates; with few "
    "replicates it is too narrow, without several there is none. Rows that stand for "
    "the same row of the paper all count, and columns that are not comparable with it "
    "do, too."
)
LEAST, SAMPLES = 3, 2_000
"""Rows whose order is worth a line, and bootstrap samples."""


def order_of_rows(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section: a line for every column where the paper has enough rows.

    Args:
        layout: the experiment.
        cells: its judged cells.
    """
    lines = []
    for block in layout.blocks:
        for column in layout.columns:
            own = [
                cell
                for cell in cells
                if (cell.block, cell.column) == (block, column)
                and cell.paper_difference is not None
            ]
            if len(own) >= LEAST:
                lines.append([block.label, column.heading, *_order(own)])
    names = ["block", "column", "rows", "alike", "tau", "95 % interval"]
    return section(ORDER, ORDER_LEGEND, lines, names)


def _order(cells: Sequence[Cell]) -> list[str]:
    """Return rows, pairs alike, tau and its interval as text."""
    import numpy as np

    printed = np.array([cell.paper.value for cell in cells if cell.paper])
    values = _shared(cells)
    means = values.mean(axis=0)
    told_apart = _signs(printed) != 0
    alike = _signs(means) * _signs(printed) > 0
    (tau,) = kendall_tau(means[None], printed)
    interval = NOTHING
    if len(values) > 1:
        even = np.full(len(values), 1 / len(values))
        drawn = np.random.default_rng(0).multinomial(len(values), even, SAMPLES)
        taus = kendall_tau(drawn @ values / len(values), printed)
        if np.isfinite(taus).all():
            low, high = np.quantile(taus, (0.025, 0.975))
            interval = f"{low:+.2f} to {high:+.2f}"
    return [
        str(len(cells)),
        f"{alike.sum()} of {told_apart.sum()}",
        f"{tau:+.2f}" if np.isfinite(tau) else NOTHING,
        interval,
    ]


def _shared(cells: Sequence[Cell]) -> "NDArray[float64]":
    """Return the values of m rows in the n replicates that all have: [n, m].

    Means alone, [1, m], where values are of one network, whose spread says nothing of
    other networks, or where there is no such replicate.
    """
    import numpy as np

    found = [cell.compared_values for cell in cells]
    keys = [key for key in found[0] if all(key in values for values in found)]
    if not keys or any(cell.unit != REPLICATE for cell in cells):
        return np.array([[cell.compared for cell in cells]], dtype=float)
    return np.array([[values[key] for values in found] for key in keys])


def kendall_tau(
    means: "NDArray[float64]", printed: "NDArray[float64]"
) -> "NDArray[float64]":
    """Return tau-b of samples of m means with m numbers: [B, m] and [m] to [B].

    scipy computes it for one sample at a time. NaN where either are all equal.
    """
    import numpy as np

    ours, theirs = _signs(means), _signs(printed)
    untied = (ours != 0).sum(-1) * (theirs != 0).sum()
    with np.errstate(invalid="ignore"):
        tau: NDArray[float64] = ours @ theirs / np.sqrt(untied)
    return tau


def _signs(values: "NDArray[float64]") -> "NDArray[float64]":
    """Return the signs of the differences of all pairs: [..., m] to [..., m(m-1)/2]."""
    import numpy as np

    first, second = np.triu_indices(values.shape[-1], 1)
    apart = values[..., first] - values[..., second]
    signs: NDArray[float64] = np.where(abs(apart) <= ROUNDING, 0.0, np.sign(apart))
    return signs
