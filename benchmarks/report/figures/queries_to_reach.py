"""The queries each arm needs for the test cost CMA-ES has at 500."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.efficiency import Goal, goals
from benchmarks.report.figures.parts.looks import Style, arm_styles
from benchmarks.report.figures.parts.panels import finish, make_single_panel
from benchmarks.report.layout import Block, TableLayout
from benchmarks.rows.contract import SEES
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARM_INCHES, FRAME_INCHES = 0.09, 1.8
"""Height of an arm within a column, and of what is above and below all columns."""
BAND = 0.8
"""Share of a column's height that its marks are spread over."""


def queries_to_reach(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw for each column with a goal the queries that each arm needed, one mark each.

    Arms stand in the order of the legend. Hollow marks are arms that never got there,
    at what they count with: all queries they made, or those of CMA-ES if these are
    more. The axis of queries is logarithmic; 0 stands at 1.
    """
    found = [goal for goal in goals(layout, records) if goal.block == block]
    if not found:
        return None
    figure, panel = make_single_panel()
    _draw_columns(panel, found)
    known = {arm for goal in found for arm in goal.efforts}
    arms = [item for item in layout.compared_arms.items() if item[0] in known]
    words, styles = ("", *SEES), arm_styles(layout)
    arms.sort(key=lambda item: words.index(layout.sees[item[1]]))
    for place, (arm, label) in enumerate(arms):
        shift = BAND * ((place + 0.5) / len(arms) - 0.5)
        _draw_arm(panel, found, arm, label=label, shift=shift, style=styles[label])
    high = FRAME_INCHES + ARM_INCHES * len(found) * (len(arms) + 1)
    figure.set_figheight(max(figure.get_figheight(), high))
    what = "metric queries for the test value\nof CMA-ES at 500, or at all it made"
    return finish(figure, layout, block, what)


def _draw_columns(panel: "Axes", found: Sequence[Goal]) -> None:
    """Draw a band per column with the queries of CMA-ES, and explain hollow marks."""
    for place, goal in enumerate(found):
        ends = (place - 0.5, place + 0.5)
        label = "where CMA-ES is taken"
        panel.plot([goal.queries] * 2, ends, color="0.6", lw=0.8, label=label)
        panel.axhline(place + 0.5, color="0.85", lw=0.5)
    hollow: dict[str, Any] = {"ls": "none", "marker": "o", "mfc": "none"}
    panel.plot([], [], color="0.4", label="never reached (hollow)", **hollow)
    panel.set_xscale("log")
    panel.set_xlabel("metric queries, meta-training included (0 drawn at 1)")
    panel.set_yticks(range(len(found)), [goal.column.heading for goal in found])
    panel.set_ylim(len(found) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")


def _draw_arm(
    panel: "Axes",
    found: Sequence[Goal],
    arm: str,
    *,
    label: str,
    shift: float,
    style: Style,
) -> None:
    """Draw the marks of an arm, each a little off the middle of its column."""
    colour, _, marker = style
    own = [(n + shift, goal) for n, goal in enumerate(found) if arm in goal.efforts]
    points = [(goal.counted(arm), y) for y, goal in own]
    for reached, face in ((True, colour), (False, "none")):
        drawn = [
            point
            for point, (_, goal) in zip(points, own, strict=True)
            if (goal.efforts[arm].needed is not None) == reached
        ]
        x, y = [x for x, _ in drawn], [y for _, y in drawn]
        name = label if reached else ""
        panel.plot(x, y, ls="none", marker=marker, color=colour, mfc=face, label=name)
