"""What each arm reaches over metric queries, on test and on observe."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, of_row, query_curve
from benchmarks.report.figures.parts.looks import Style, arm_styles
from benchmarks.report.figures.parts.panels import draw_band, draw_mark, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading, Split
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPLITS: tuple[Split, Split] = ("test", "observe")
OBSERVE: dict[str, Any] = {"lw": 0.7, "mfc": "none"}
"""Thin lines and hollow marks: what was reached on observe."""


class Shown(NamedTuple):
    """Lines of a column by label and split, and the untouched network on test."""

    lines: dict[tuple[str, Split], Curve]
    untouched: float | None


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw test (thick, with spread) and observe (thin) metric over queries.

    One pair of lines per arm that spends queries, or of points if only the end of an
    arm is known. The axis of queries is logarithmic. A grey line is the untouched
    network, if the layout names its row. None if the layout compares no budgets.
    """
    if not layout.query_budgets:
        return None
    styles = arm_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> Shown | None:
        lines = {
            (label, split): _curve(own, arm, reading, split)
            for arm, label in layout.compared_arms.items()
            for split in SPLITS
        }
        known = {key: line for key, line in lines.items() if line}
        untouched = reading.all_finals(of_row(own, layout.untouched_row or ""))
        return Shown(known, stats.mean(untouched)) if known else None

    def draw(panel: "Axes", column: Column, shown: Shown) -> None:
        _draw_references(panel, shown)
        for (label, split), line in shown.lines.items():
            if split == "observe":
                _draw_thin(panel, line, styles[label])
            elif len(line.x) == 1:
                end = (line.x, line.mean, line.std)
                draw_mark(panel, end, label=label, style=styles[label])
            else:
                draw_band(panel, line, label=label, style=styles[label])
        panel.set_xscale("log")
        panel.set_xlabel("metric queries (thick: test, thin: observe)")
        panel.set_ylabel(column.axis_label)

    return draw_panels(
        layout,
        records,
        block,
        read=read,
        draw=draw,
        what="over metric queries\nbands and bars: {spread}",
    )


def _draw_references(panel: "Axes", shown: Shown) -> None:
    """Draw the untouched network, and explain in the legend what is thin and hollow."""
    if shown.untouched is not None:
        panel.axhline(shown.untouched, color="0.6", lw=0.8, label="untouched")
    if any(split == "observe" for _, split in shown.lines):
        name = "observe split (thin, hollow)"
        panel.plot([], [], color="0.4", marker="o", label=name, **OBSERVE)


def _draw_thin(panel: "Axes", line: Curve, style: Style) -> None:
    """Draw a thin line, or a hollow mark for a single point."""
    colour, dash, mark = style
    alone = mark if len(line.x) == 1 else ""
    form: dict[str, Any] = {"linestyle": dash, "marker": alone}
    panel.plot(line.x, line.mean, color=colour, **form, **OBSERVE)


def _curve(
    runs: Sequence[RunRecord], arm: str, reading: Reading, split: Split
) -> Curve | None:
    """Return a curve without its point at 0 queries, which no log axis can show."""
    line = query_curve(runs, arm, reading, split)
    if line is None:
        return None
    keep = [index for index, x in enumerate(line.x) if x > 0]
    parts = [tuple(part[i] for i in keep) for part in (line.x, line.mean, line.std)]
    return Curve(*parts) if keep else None
