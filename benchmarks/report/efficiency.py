"""How many metric queries an arm needs for the test cost CMA-ES has at 500.

The least number of queries is read from the mean curve on test, which rises and falls:
it tells methods apart, and is not a rule when to stop. CMA-ES is itself an arm here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from benchmarks.report import stats
from benchmarks.report.columns import Column
from benchmarks.report.curves import Curve, of_arm, of_place, of_row, query_curve
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.runs.record import RunRecord

REFERENCE_ARM, REFERENCE_QUERIES = "cma-es", 500

Part = tuple[TableLayout, Sequence[RunRecord]]
"""An experiment: its layout and all its records of one tier."""


@dataclass(frozen=True)
class Effort:
    """What an arm needed to reach a goal.

    Attributes:
        needed: least queries at which its mean on test is as good; None if it never is.
        spent: most queries of one of its runs.
    """

    needed: float | None
    spent: int


@dataclass(frozen=True)
class Goal:
    """A column in which CMA-ES gains over the untouched network.

    Attributes:
        experiment: where it is.
        block, column: its place there.
        value: mean of CMA-ES on test after `queries`, native unit.
        queries: 500, or all queries CMA-ES made if they were fewer.
        efforts: what each arm that was run there needed, by name.
    """

    experiment: str
    block: Block
    column: Column
    value: float
    queries: int
    efforts: Mapping[str, Effort]

    def counted(self, arm: str) -> float:
        """Return the queries that an arm which was run there counts with.

        0 queries count as 1. An arm that never reached the goal counts with all it
        spent, or with the queries of CMA-ES if these are more.
        """
        effort = self.efforts[arm]
        if effort.needed is None:
            return max(self.queries, effort.spent)
        return max(effort.needed, 1.0)

    def times_fewer(self, arm: str) -> float:
        """Return the queries of CMA-ES over those that an arm counts with."""
        return self.queries / self.counted(arm)


@dataclass(frozen=True)
class Overall:
    """How an arm does over the goals in whose columns it was run.

    Attributes:
        reached: number of goals it reached.
        goals: number of goals.
        where_reached: geometric mean of `times_fewer` where reached; None if nowhere.
        all_goals: geometric mean of `times_fewer` over all.
    """

    reached: int
    goals: int
    where_reached: float | None
    all_goals: float


def goals(layout: TableLayout, records: Sequence[RunRecord]) -> list[Goal]:
    """Return the columns with something to gain, by block.

    None in a layout that compares no budgets, or has no untouched row. All means are
    over the replicates that CMA-ES has, so that all arms face the same problems.
    """
    if not layout.query_budgets or layout.untouched_row is None:
        return []
    layout = layout.fitted(records)
    places = [(block, column) for block in layout.blocks for column in layout.columns]
    found = (_goal(layout, records, *place) for place in places)
    return [goal for goal in found if goal is not None]


def overall(parts: Sequence[Part]) -> dict[str, Overall]:
    """Return how each arm does over the goals of several experiments, by name.

    Arms are in the order of the layouts. One that was run in no column with a goal is
    left out.
    """
    found = [goal for layout, records in parts for goal in goals(layout, records)]
    arms = dict.fromkeys(arm for layout, _ in parts for arm in layout.compared_arms)
    tried = {arm: [goal for goal in found if arm in goal.efforts] for arm in arms}
    return {arm: _overall(arm, own) for arm, own in tried.items() if own}


def _overall(arm: str, tried: Sequence[Goal]) -> Overall:
    reached = [goal for goal in tried if goal.efforts[arm].needed is not None]
    return Overall(
        reached=len(reached),
        goals=len(tried),
        where_reached=_mean_times(arm, reached) if reached else None,
        all_goals=_mean_times(arm, tried),
    )


def _mean_times(arm: str, goals: Sequence[Goal]) -> float:
    return geometric_mean([goal.times_fewer(arm) for goal in goals])


def _goal(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, column: Column
) -> Goal | None:
    """Return the goal of a column, None if CMA-ES gains too little or is not there."""
    own, reading = of_place(records, block, column), layout.reading(column)
    searches = of_arm(own, REFERENCE_ARM, reading)
    replicates = {record.spec.replicate for record in searches}
    own = [record for record in own if record.spec.replicate in replicates]
    line = query_curve(own, REFERENCE_ARM, reading)
    value = None if line is None else _at(line, REFERENCE_QUERIES)
    before = stats.mean(reading.all_finals(of_row(own, layout.untouched_row or "")))
    if value is None or before is None:
        return None
    if column.sign * (before - value) <= column.equal_within:
        return None
    curves = {arm: query_curve(own, arm, reading) for arm in layout.compared_arms}
    efforts = {
        arm: Effort(_needed(curve, value, column), _spent(own, arm, reading))
        for arm, curve in curves.items()
        if curve is not None
    }
    queries = min(REFERENCE_QUERIES, _spent(own, REFERENCE_ARM, reading))
    return Goal(layout.experiment, block, column, value, queries, efforts)


def _at(line: Curve, queries: int) -> float | None:
    """Return the mean at the last point of at most so many queries."""
    points = zip(line.x, line.mean, strict=True)
    return next((mean for x, mean in reversed([*points]) if x <= queries), None)


def _needed(line: Curve, value: float, column: Column) -> float | None:
    """Return the first point at which the mean is as good as a value."""
    points = zip(line.x, line.mean, strict=True)
    worst = column.sign * value + stats.ROUNDING
    return next((x for x, mean in points if column.sign * mean <= worst), None)


def _spent(records: Sequence[RunRecord], arm: str, reading: Reading) -> int:
    return max(record.queries for record in of_arm(records, arm, reading))
