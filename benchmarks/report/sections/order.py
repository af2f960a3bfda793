"""The section on the order of rows: ours beside the paper's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import Cell
from benchmarks.report.columns import NOTHING, REPLICATE
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

ORDER = "## Order of rows"
ORDER_LEGEND = (
    "Whether rows stand in the order in which the paper has them. `alike`: pairs of "
    "rows that the paper tells apart and that differ the same way here. `tau`: "
    "Kendall's tau-b of our means and the paper's numbers, 1 for the paper's order, -1 "
    "for its reverse. The interval holds 95 % of 2,000 bootstrap samples of the values "
    "of every row, the same replicates for all rows; it is too short where values are "
    "few. `·`: a row has a single value, so nothing is known of its spread."
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
    means = np.array([[cell.compared for cell in cells]], dtype=float)
    agreeing = _signs(means) * _signs(printed)
    interval = NOTHING
    if all(len(cell.compared_values) > 1 for cell in cells):
        taus = kendall_tau(_samples(cells), printed)
        low, high = np.nanquantile(taus, (0.025, 0.975))
        interval = f"{low:+.2f} to {high:+.2f}"
    return [
        str(len(cells)),
        f"{(agreeing > 0).sum()} of {(_signs(printed) != 0).sum()}",
        f"{kendall_tau(means, printed)[0]:+.2f}",
        interval,
    ]


def kendall_tau(
    means: "NDArray[float64]", printed: "NDArray[float64]"
) -> "NDArray[float64]":
    """Return tau-b of samples of m means with m numbers: [B, m] and [m] to [B].

    scipy computes it for one sample at a time. NaN where all means are equal.
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
    signs: NDArray[float64] = np.sign(values[..., first] - values[..., second])
    return signs


def _samples(cells: Sequence[Cell]) -> "NDArray[float64]":
    """Return bootstrap samples of the means of rows, [B, m]."""
    import numpy as np

    generator = np.random.default_rng(0)
    weights: dict[tuple[int, ...], NDArray[float64]] = {}
    means = []
    for cell in cells:
        keys = tuple(cell.compared_values)
        even = [1 / len(keys)] * len(keys)
        drawn = generator.multinomial(len(keys), even, SAMPLES) / len(keys)
        if cell.unit == REPLICATE:
            # They share network and split, so rows with the same ones share draws.
            drawn = weights.setdefault(keys, drawn)
        means.append(drawn @ np.array(list(cell.compared_values.values())))
    return np.stack(means, axis=1)
