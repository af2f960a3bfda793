"""How errors on new tasks are distributed, by learner."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.report.columns import Column, Reading
from benchmarks.report.curves import of_row
from benchmarks.report.figures.panels import draw_panels, row_styles
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Errors = dict[str, list[float]]
"""Errors on all new tasks of all replicates by row, ascending."""
FLOOR = 1e-4
"""Least error that is drawn, as the axis is logarithmic."""


def task_errors(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the share of new tasks with an error of at most x, a line a learner.

    None for a table that is not about learners, or has no metric that is an error.
    """
    if not layout.of_learners:
        return None
    return draw_panels(
        layout,
        records,
        block,
        read=partial(_read, layout),
        draw=partial(_draw, layout),
        what="share with at most this error, all replicates",
    )


def _read(
    layout: TableLayout, records: list[RunRecord], reading: Reading
) -> Errors | None:
    column = reading.column
    if column.higher_is_better:
        return None
    found: Errors = {}
    for row in layout.rows:
        own = [r.values("test", column.metric.label) for r in of_row(records, row.name)]
        errors = sorted(value for each in own for value in each if value is not None)
        if errors:
            found[row.label] = errors
    return found


def _draw(layout: TableLayout, panel: "Axes", column: Column, errors: Errors) -> None:
    styles = row_styles(layout)
    for label, values in errors.items():
        colour, dash, _ = styles[label]
        shares = [place / len(values) for place in range(1, len(values) + 1)]
        drawn = [max(value, FLOOR) for value in values]
        panel.plot(drawn, shares, color=colour, linestyle=dash, label=label)
    panel.set_xscale("log")
    panel.set_xlabel(column.axis_label)
    panel.set_ylabel("share of new tasks")
