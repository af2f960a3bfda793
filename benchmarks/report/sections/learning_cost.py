"""The section on learned optimizers: what learning one took, and when that has paid."""

import math
from collections.abc import Sequence

from benchmarks.report import stats
from benchmarks.report.cells import Cell
from benchmarks.report.columns import NOTHING, Reading
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.rows.contract import LOSS_ONLY
from benchmarks.rows.controls import DENSE
from benchmarks.runs.notes import META_STEPS

LEARNING = "## What learning an optimizer took"
LEGEND = (
    "`queries`, `steps`: metric queries and gradient steps of the meta-training. "
    "`own`: queries of each fine-tuning after it."
)
IN_QUERIES = (
    " `pays in queries`: fine-tunings after which all this took fewer queries than as "
    "many of the row `{}`, or of its like on the method's own network, if the mean on "
    "test is no worse than there."
)
IN_STEPS = (
    " `pays in steps`: fine-tunings after which the steps that were saved are as many "
    "as those of the meta-training; a fine-tuning is cut off where its mean on test "
    "reaches what the row `{}`, or its like, ends with."
)
NEVER = f" `{NOTHING}`: never."


def learning_cost(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section; empty if no run uses an optimizer that was learned."""
    places = {(c.block.name, c.column.name, c.row.name): c for c in cells}
    labels = {row.name: row.label for row in layout.rows}
    dense, loss = DENSE.name in labels, LOSS_ONLY in labels
    legend, names = LEGEND, ["block", "column", "method", "queries", "own", "steps"]
    if dense:
        legend += IN_QUERIES.format(labels[DENSE.name])
        names.append("pays in queries")
    if loss:
        legend += IN_STEPS.format(labels[LOSS_ONLY])
        names.append("pays in steps")
    lines = []
    for cell in cells:
        steps = cell.note(META_STEPS)
        if steps is None:
            continue
        block, column, shared = cell.block, cell.column, _shared_queries(cell)
        line = [block.label, column.label, cell.row.label]
        line += [f"{shared:,.0f}", f"{_queries(cell) - shared:,.0f}", f"{steps:,.0f}"]
        usual, own = (DENSE.name, LOSS_ONLY), (cell.row.rival_row, cell.row.base_row)
        dense_row, loss_row = own if own[0] else usual
        if dense:
            other = places.get((block.name, column.name, dense_row))
            line.append(_fine_tunings(shared, _saved_queries(cell, other)))
        if loss:
            other = places.get((block.name, column.name, loss_row))
            line.append(_fine_tunings(steps, _saved_steps(cell, other, layout)))
        lines.append(line)
    return section(LEARNING, legend + NEVER, lines, names)


def _fine_tunings(spent: float, saved: float) -> str:
    """Return after how many fine-tunings what is saved in each is what was spent."""
    return f"{math.ceil(spent / saved):,}" if saved > 0 else NOTHING


def _queries(cell: Cell) -> float:
    return stats.mean([record.queries for record in cell.finished]) or 0.0


def _shared_queries(cell: Cell) -> float:
    return stats.mean([record.shared_queries for record in cell.finished]) or 0.0


def _saved_queries(cell: Cell, dense: Cell | None) -> float:
    """Return how many fewer queries a fine-tuning takes than one that is as good."""
    if dense is None or dense.mean is None or cell.mean is None:
        return 0.0
    if cell.column.sign * cell.mean > cell.column.sign * dense.mean:
        return 0.0
    return _queries(dense) - (_queries(cell) - _shared_queries(cell))


def _saved_steps(cell: Cell, loss: Cell | None, layout: TableLayout) -> float:
    """Return the steps from where a row reaches what another ends with to its end."""
    if loss is None or loss.mean is None or not cell.finished:
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
