"""The section on what training a network took, and how well it fits its images."""

from collections.abc import Sequence

from benchmarks.report import stats
from benchmarks.report.cells import Cell
from benchmarks.report.columns import NOTHING
from benchmarks.report.reading import Reading
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table
from benchmarks.runs.record import NETWORK

TRAINING = "## Training"
LEGEND = (
    "`training error`: error rate on 5,000 of the training images, without "
    "augmentation. `times`: gradient steps over those of the first row; `s`: seconds "
    "of the training, metric queries included."
)
TRAIN_ERROR = "train_error"
"""Note of a record."""


def training_cost(cells: Sequence[Cell]) -> list[str]:
    """Return the section as Markdown; empty if no record notes a training error."""
    told = [cell for cell in cells if _is_told(cell)]
    if not told:
        return []
    steps = _mean(told[0], "steps")
    lines = [
        [
            cell.column.label,
            cell.row.label,
            cell.column.summary(_all(cell, TRAIN_ERROR)),
            f"{_mean(cell, 'steps') / steps:.1f}" if steps else NOTHING,
            f"{_mean(cell, 'queries'):,.0f}",
            f"{_mean(cell, NETWORK):,.0f}",
        ]
        for cell in told
    ]
    names = ["column", "method", "training error ↓", "times", "queries", "s"]
    return [TRAINING, LEGEND, to_markdown(text_table(lines, names))]


def _is_told(cell: Cell) -> bool:
    is_aim = Reading(cell.column).is_aim_of(cell.records)
    return is_aim and bool(_all(cell, TRAIN_ERROR))


def _all(cell: Cell, what: str) -> list[float]:
    read = {
        "steps": lambda record: record.gradient_steps,
        "queries": lambda record: record.queries,
        NETWORK: lambda record: record.seconds.get(NETWORK),
    }
    get = read.get(what, lambda record: record.notes.get(what))
    found = (get(record) for record in cell.finished)
    return [float(value) for value in found if value is not None]


def _mean(cell: Cell, what: str) -> float:
    return stats.mean(_all(cell, what)) or 0.0
