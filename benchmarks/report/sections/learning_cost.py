"""The section on learned optimizers: what learning one took, and when that has paid."""

import math
from collections.abc import Sequence

from benchmarks.report import stats
from benchmarks.report.cells import Cell
from benchmarks.report.columns import NOTHING, Reading
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.rows.controls import DENSE
from benchmarks.runs.notes import META_STEPS

LEARNING = "## What learning an optimizer took"
LEGEND = (
    "`queries`, `steps`: metric queries and gradient steps of the meta-training. "
    "`own`: queries of each fine-tuning after it. `pays in queries`: fine-tunings "
    "after which all this took fewer queries than as many of the row `{dense}`. `pays "
    "in steps`: fine-tunings after which the steps that were saved are as many as "
    "those of the meta-training; a fine-tuning is cut off where its mean on test "
    "reaches what the row `{loss}` ends with. `{nothing}`: never."
)
NAMES = (
    *("block", "column", "method", "queries", "own", "steps"),
    *("pays in queries", "pays in steps"),
)


def learning_cost(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section; empty if no run uses an optimizer that was learned."""
    places = {(c.block.name, c.column.name, c.row.name): c for c in cells}
    evaluated = DENSE.name if DENSE.name in layout.row_names else layout.rival_row
    lines = []
    for cell in cells:
        steps = cell.note(META_STEPS)
        if steps is None:
            continue
        block, column = cell.block.name, cell.column.name
        dense = places.get((block, column, evaluated or ""))
        loss = places.get((block, column, layout.loss_only_row or ""))
        shared, own = _shared_queries(cell), _queries(cell) - _shared_queries(cell)
        saved_queries = _queries(dense) - own if dense is not None else 0.0
        lines.append(
            [
                cell.block.label,
                cell.column.label,
                cell.row.label,
                f"{shared:,.0f}",
                f"{own:,.0f}",
                f"{steps:,.0f}",
                _fine_tunings(shared, saved_queries),
                _fine_tunings(steps, 0 if loss is None else _saved(cell, loss, layout)),
            ]
        )
    labels = {row.name: row.label for row in layout.rows}
    legend = LEGEND.format(
        dense=labels.get(evaluated or "", NOTHING),
        loss=labels.get(layout.loss_only_row or "", NOTHING),
        nothing=NOTHING,
    )
    return section(LEARNING, legend, lines, NAMES)


def _fine_tunings(spent: float, saved: float) -> str:
    """Return after how many fine-tunings what is saved in each is what was spent."""
    return f"{math.ceil(spent / saved):,}" if saved > 0 else NOTHING


def _queries(cell: Cell) -> float:
    return stats.mean([record.queries for record in cell.finished]) or 0.0


def _shared_queries(cell: Cell) -> float:
    return stats.mean([record.shared_queries for record in cell.finished]) or 0.0


def _saved(cell: Cell, loss: Cell, layout: TableLayout) -> float:
    """Return the steps from where a row reaches what another ends with to its end."""
    if loss.mean is None or not cell.finished:
        return 0.0
    last = cell.finished[0].gradient_steps
    for step, cost in _course(cell, layout.reading(cell.column)):
        if cost <= cell.column.sign * loss.mean:
            return float(last - step)
    return 0.0


def _course(cell: Cell, reading: Reading) -> list[tuple[int, float]]:
    """Return steps with the mean cost on test there."""
    found: dict[int, list[float]] = {}
    for record in cell.finished:
        for point in record.trace:
            values = reading.passed(record, point)
            if values:
                found.setdefault(point.step, []).append(stats.mean(values) or 0.0)
    sign = cell.column.sign
    means = {step: stats.mean(values) for step, values in sorted(found.items())}
    return [(step, sign * mean) for step, mean in means.items() if mean is not None]
