"""The section on the queries each method needs for the test cost of CMA-ES."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.columns import NOTHING
from benchmarks.report.efficiency import Goal, Overall, Part, goals, overall
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table

if TYPE_CHECKING:
    from pandas import DataFrame

QUERIES_TO_REACH = "## Queries for the test cost of CMA-ES"
LEGEND = (
    "Cells: the least metric queries, meta-training included, at which the mean of a "
    "method on test is as good as that of CMA-ES at 500, or at all it made if they "
    "were fewer. `·`: never; empty: not run. Columns: those in which CMA-ES is then "
    "better than the untouched network by more than the margin of `=`. Means are over "
    "the replicates that CMA-ES has. `times fewer`: geometric mean of the queries of "
    "CMA-ES over those of the method, 0 counting as 1: first over the columns it "
    "reached, then over all it was run in. In the latter a column it never reached "
    "counts with all queries it made there, and at most as 1, which is more than its "
    "due. A mean on test rises and falls, and its first good point flatters every "
    "method; the line of CMA-ES itself shows how much."
)


def queries_to_reach(parts: Sequence[Part]) -> list[str]:
    """Return the section as Markdown; empty if there is nothing to reach."""
    table = queries_to_reach_table(parts)
    return [QUERIES_TO_REACH, LEGEND, to_markdown(table)] if len(table) else []


def queries_to_reach_table(parts: Sequence[Part]) -> "DataFrame":
    """Return one line per arm and one column per goal of one or several experiments.

    Args:
        parts: layout and records of each experiment.
    """
    found = [goal for layout, records in parts for goal in goals(layout, records)]
    labels: dict[str, str] = {}
    seen: dict[str, str] = {}
    for layout, _ in parts:
        for arm, label in layout.compared_arms.items():
            labels.setdefault(arm, label)
            seen.setdefault(arm, layout.sees[label])
    lines = [
        [
            labels[arm],
            seen[arm],
            *(_needed_text(goal, arm) for goal in found),
            *_ends(own),
        ]
        for arm, own in overall(parts).items()
    ]
    ends = ["reached", "times fewer, reached", "times fewer, all"]
    table = text_table(lines, ["method", "sees", *_headings(found), *ends])
    return table if any(seen.values()) else table.drop(columns="sees")


def _headings(found: Sequence[Goal]) -> list[str]:
    """Return what each goal is called, with its experiment and block where needed."""
    several_experiments = len({goal.experiment for goal in found}) > 1
    several_blocks = len({goal.block.name for goal in found}) > 1
    return [
        " ".join(
            [goal.experiment] * several_experiments
            + [goal.block.name] * several_blocks
            + [goal.column.heading]
        )
        for goal in found
    ]


def _needed_text(goal: Goal, arm: str) -> str:
    if arm not in goal.efforts:
        return ""
    needed = goal.efforts[arm].needed
    return NOTHING if needed is None else f"{needed:,.0f}"


def _ends(own: Overall) -> list[str]:
    where = NOTHING if own.where_reached is None else f"{own.where_reached:.2f}"
    return [f"{own.reached} of {own.goals}", where, f"{own.all_goals:.2f}"]
