"""How learners adapt to new tasks, over inner steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, of_place, of_row
from benchmarks.report.figures.panels import (
    PANEL_INCHES,
    draw_band,
    finish,
    make_panel_rows,
    row_styles,
    spread_over,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.notes import (
    GRADIENT_NORM,
    INNER_STEPS,
    QUERY_ACCURACY,
    QUERY_STEPS,
    SUPPORT_LOSS,
)
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (
    ("support loss, median of tasks", INNER_STEPS, SUPPORT_LOSS),
    ("gradient norm, median of tasks", INNER_STEPS, GRADIENT_NORM),
    ("query accuracy, mean of tasks", QUERY_STEPS, QUERY_ACCURACY),
)
"""What is drawn: its words, and the notes of its steps and of its values."""
FLOOR = 1e-6
"""Least loss and norm that are drawn: in single precision both end at 0."""


def adaptation(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw support loss, gradient norm and query accuracy over inner steps.

    A line of panels for every column. Steps stand on a logarithmic scale, as most of
    the way is gone in the first ten. Accuracies stand from the first step on: before
    it, queries are answered by chance. None if no run notes how it adapts.

    Source: Zhang, Li, Giannakis, ICASSP 2024, the poster's figures of convergence.
    Differs: the accuracy stands beside them.
    """
    noting = [record for record in records if INNER_STEPS in record.notes]
    columns = [c for c in layout.columns if of_place(noting, block, c)]
    if not columns:
        return None
    figure, panels = make_panel_rows(len(columns), len(KINDS), PANEL_INCHES)
    for column, line in zip(columns, panels, strict=True):
        own = of_place(noting, block, column)
        for panel, kind in zip(line, KINDS, strict=True):
            _draw(panel, layout, column, own, kind)
    spread = spread_over(layout, noting, block)
    words = f"adapting to new tasks\nbands: {spread}, of logarithms on logarithmic axes"
    return finish(figure, layout, block, words)


def _draw(
    panel: "Axes",
    layout: TableLayout,
    column: Column,
    records: list[RunRecord],
    kind: tuple[str, str, str],
) -> None:
    words, steps, values = kind
    styles = row_styles(layout)
    for row in layout.rows:
        line = _curve(of_row(records, row.name), steps, values)
        if line is not None:
            draw_band(panel, line, label=row.label, style=styles[row.label])
    panel.set_title(column.label, fontsize="medium")
    panel.set_xscale("symlog", linthresh=1, subs=range(2, 10))
    panel.set_xlim(left=int(values == QUERY_ACCURACY))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlabel("inner steps, logarithmic from 1 on")
    panel.set_ylabel(words)
    if values != QUERY_ACCURACY:
        panel.set_yscale("log")


def _curve(records: Sequence[RunRecord], steps: str, values: str) -> Curve | None:
    """Return the mean of replicates over steps, up to where one has no number.

    It is geometric where values stand on a logarithmic axis.
    """
    if not records:
        return None
    found: dict[float, list[float]] = {}
    for step, *own in zip(
        records[0].notes[steps], *(r.notes[values] for r in records), strict=True
    ):
        if None in own:
            break
        if values != QUERY_ACCURACY:
            found[step] = [max(value, FLOOR) for value in own]
        elif step:
            found[step] = own
    return Curve.of(found, geometric=values != QUERY_ACCURACY) if found else None
