"""What rows reach over all columns of some blocks, against the queries they make."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.figures.panels import (
    ALL_BLOCKS,
    draw_point,
    finish,
    make_free_panels,
    row_styles,
)
from benchmarks.report.layout import TableLayout
from benchmarks.report.sections.over_columns import standings_by_group
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def regret_over_queries(
    layout: TableLayout, records: Sequence[RunRecord]
) -> "Figure | None":
    """Draw a panel for each group of blocks: mean distance to the best row, by queries.

    A mark is a row; lower is better, and further left is cheaper.
    """
    groups = standings_by_group(layout, records)
    if not groups:
        return None
    figure, panels = make_free_panels(len(groups))
    styles = row_styles(layout)
    for panel, (name, found) in zip(panels, groups.items(), strict=True):
        for each in found:
            label, x = each.row.label, max(1, each.queries)
            draw_point(panel, x, each.regret, label=label, style=styles[label])
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_title(name, fontsize="medium")
        panel.set_xlabel("evaluations of the metric, at most")
        panel.set_ylabel("mean distance to the best row\n(share of the range)")
    return finish(figure, layout, ALL_BLOCKS, "regret on test over evaluations")
