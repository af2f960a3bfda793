"""What each arm reaches over metric queries, on test and on observe."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, query_curve
from benchmarks.report.figures.looks import arm_styles
from benchmarks.report.figures.panels import draw_band, draw_mark, draw_panels
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading, Split
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Lines = dict[tuple[str, Split], Curve]
SPLITS: tuple[Split, Split] = ("test", "observe")


def query_curves(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw test (thick, with spread) and observe (thin) metric over queries.

    One pair of lines per arm that spends queries, or of points if only the end of an
    arm is known. The axis of queries is logarithmic. None if the layout compares no
    budgets.
    """
    if not layout.query_budgets:
        return None
    styles = arm_styles(layout)

    def read(own: list[RunRecord], reading: Reading) -> Lines:
        lines = {
            (label, split): _curve(own, arm, reading, split)
            for arm, label in layout.compared_arms.items()
            for split in SPLITS
        }
        return {key: line for key, line in lines.items() if line}

    def draw(panel: "Axes", column: Column, lines: Lines) -> None:
        for (label, split), line in lines.items():
            colour, dash, mark = styles[label]
            if split == "observe":
                thin: dict[str, Any] = {"ls": dash, "lw": 0.7, "mfc": "none"}
                alone = mark if len(line.x) == 1 else ""
                panel.plot(line.x, line.mean, color=colour, marker=alone, **thin)
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
