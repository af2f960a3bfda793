"""Under a bound: decisions of fitted classifiers, tuned for one metric within another.

Recall of two classes with a least precision, accuracy of several with a least recall of
every class, and accuracy with a greatest gap between groups. Searches that know nothing
of bounds get one number for both: feasibility first (Deb 2000).
"""

from dataclasses import dataclass, replace

from benchmarks.problems.fitted.pipeline import OBSERVED
from benchmarks.problems.fitted.tiers import BY_SEX, FittedTable
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row
from benchmarks.rows.on_outputs import OURS
from benchmarks.rows.post_hoc import (
    CLASS_OFFSETS,
    CMA_OFFSETS,
    LOGIT_ADJUSTMENT,
    THRESHOLD_GRID,
)
from benchmarks.rows.tuners import FAIRLEARN, OPTUNA_OFFSETS
from benchmarks.runs.spec import Unit
from benchmarks.tables.ours.fitted_tables import (
    ASKS,
    CAPTION,
    CONVENTION,
    DATA_NOTE,
    NAMES,
    REPLICATES_NOTE,
    SETTINGS_NOTES,
    SIXTH,
    UNTOUCHED,
    estimators_at,
    standing,
    tables_at,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table


@dataclass(frozen=True)
class Aim:
    """An objective within a bound.

    Attributes:
        name: as columns are named.
        objective: name of the metric to improve.
        bounded: name of the metric with the bound.
        label: of the objective, as printed.
        bounded_label: of the other.
        side: `at_least` or `at_most`.
        rows: rows that work towards it.
    """

    name: str
    objective: str
    bounded: str
    label: str
    bounded_label: str
    side: str
    rows: tuple[Row, ...]

    def unit(self, bound: float) -> Unit:
        """Return the metric of runs, with the bound of a table."""
        settings = {"objective": self.objective, "of": self.bounded, self.side: bound}
        return Unit("bounded", settings)

    def columns(self, runs: str, classifier: str) -> list[Column]:
        """Return the columns of objective and bounded metric."""
        return [
            Column(
                f"{runs}/{metric}", f"{classifier}, {label}", Unit(metric), runs=runs
            )
            for metric, label in (
                (self.objective, self.label),
                (self.bounded, self.bounded_label),
            )
        ]


def _without_verdicts(*rows: Row) -> tuple[Row, ...]:
    # A better objective says nothing where the bound is not met.
    return tuple(replace(row, base=()) for row in rows)


SEARCHED = _without_verdicts(
    UNTOUCHED,
    LOGIT_ADJUSTMENT,
    THRESHOLD_GRID,
    CLASS_OFFSETS,
    OPTUNA_OFFSETS,
    CMA_OFFSETS,
    OURS,
)
PRECISE = Aim(
    "precise",
    "sensitivity",
    "precision",
    "recall",
    "precision",
    "at_least",
    SEARCHED,
)
EVERY_CLASS = Aim(
    "every-class",
    "accuracy",
    "least-recall",
    "accuracy",
    "least recall",
    "at_least",
    SEARCHED,
)
FAIR = Aim(
    "fair",
    "accuracy",
    "equalized-odds",
    "accuracy",
    "gap",
    "at_most",
    (*SEARCHED[:3], *_without_verdicts(FAIRLEARN, OURS)),
)

NOTES = (
    "An objective counts only where its bound is met: look at Bounds. There "
    "are no signs, since a better objective beyond the bound is no gain.",
    "Bounds are round numbers, chosen on one observe split so that they bind: a "
    "quarter of the classifiers meet theirs as fitted.",
    "Searches take feasibility first: what meets the bound is better than what "
    "does not. They see observe alone, and nothing keeps a margin for them.",
    "MetricOpt on outputs asks for a probability of 95 % that the bound is met "
    "on other data, and says so where it finds nothing that reaches it.",
    "By sex: MetricOpt on outputs has offsets for each group, as Fairlearn has "
    "thresholds, between two of which it draws decisions at random. Other rows have "
    "one threshold for all. Fairlearn aims at no gap at all, and asks no metric.",
)


def aim_of(problem: FittedTable) -> Aim:
    """Return what a table is tuned for."""
    if problem.data.group:
        return FAIR
    return PRECISE if problem.classes == 2 else EVERY_CLASS


def tuned_bounds(tier: str) -> Table:
    """Return the table of decisions tuned under a bound at a tier."""
    problems, estimators = tables_at(tier), estimators_at(tier)
    if tier != "smoke":
        problems = (*problems, BY_SEX.at(tier))
    aims = list(dict.fromkeys(map(aim_of, problems)))
    return table(
        [
            _place(replace(problem, estimator=estimator), aim_of(problem))
            for problem in problems
            for estimator in estimators
        ],
        order=(*SEARCHED[:-1], *FAIR.rows[-2:]),
        title="Decisions tuned under a bound",
        caption=CAPTION.format(observed=SIXTH.format(most=f"{OBSERVED:,}")),
        convention=CONVENTION,
        blocks=tuple(
            Block(problem.name, f"{problem.label}: {_in_words(problem)}")
            for problem in problems
        ),
        columns=tuple(
            column
            for aim in aims
            for name in estimators
            for column in aim.columns(f"{name}/{aim.name}", NAMES[name])
        ),
        untouched_row=UNTOUCHED.name,
        query_budgets=(),
        notes=(*NOTES, *SETTINGS_NOTES, DATA_NOTE, REPLICATES_NOTE),
    )


def _place(problem: FittedTable, aim: Aim) -> Place:
    unit = aim.unit(problem.bound)
    return Place(
        problem.name,
        problem,
        unit,
        f"{problem.estimator}/{aim.name}",
        rows=standing(aim.rows, problem, unit),
        asks=ASKS,
        also=(Unit(aim.objective), Unit(aim.bounded)),
    )


def _in_words(problem: FittedTable) -> str:
    aim = aim_of(problem)
    side = aim.side.replace("_", " ")
    return f"{aim.label}, {aim.bounded_label} {side} {problem.bound:g}"


EXPERIMENTS.register("tuned-bounds")(experiment_of("tuned-bounds", tuned_bounds))
