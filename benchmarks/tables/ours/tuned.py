"""Against the tools people use: decisions of fitted classifiers, tuned for a metric.

Tables with classifiers of scikit-learn; every row sees the outputs on the observe split
and moves decisions alone.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.problems.fitted.estimators import ESTIMATORS, Estimator
from benchmarks.problems.fitted.pipeline import OBSERVED, TRAINED
from benchmarks.problems.fitted.tiers import CANCER, DIGITS, TABLES, FittedTable
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row
from benchmarks.rows.controls import CROSS_ENTROPY
from benchmarks.rows.on_outputs import OURS
from benchmarks.rows.post_hoc import (
    CLASS_OFFSETS,
    CMA_OFFSETS,
    LOGIT_ADJUSTMENT,
    THRESHOLD_GRID,
)
from benchmarks.rows.tuners import ONE_VS_REST, OPTUNA_OFFSETS
from benchmarks.runs.spec import Unit
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

UNTOUCHED = replace(CROSS_ENTROPY, name="untouched", label="as fitted", paper={})
TOOLS = (
    UNTOUCHED,
    LOGIT_ADJUSTMENT,
    THRESHOLD_GRID,
    ONE_VS_REST,
    CLASS_OFFSETS,
    OPTUNA_OFFSETS,
    CMA_OFFSETS,
    OURS,
)
"""Rows of the table; each stands where it suits."""
METRICS = {
    "f-macro": "macro F",
    "balanced-accuracy": "balanced accuracy",
    "matthews": "Matthews",
}
NAMES: dict[Estimator, str] = {
    "logistic": "logistic regression",
    "boosting": "boosting",
    "mlp": "MLP",
}
ASKS = "this table compares what is added to known outputs"
BUDGETS = (15, 50, 150)
CAPTION = (
    "Half of the examples are test. Classifiers with scikit-learn's defaults are "
    f"fitted to at most {TRAINED:,} others and a third of all. At most {{observed:,}} "
    "further ones and a sixth of all are to observe. Every query of a metric counts."
)
DATA_NOTE = (
    "Class of work and occupation are predicted from the other attributes of A9A, but "
    "income; values of fewer than 100 people are left out. CoverType, class 2 and "
    "classes 4 to 6: against the rest."
)
REPLICATES_NOTE = (
    "Replicates differ in the examples of train and observe, and so in the classifier."
)


def tables_at(tier: str) -> tuple[FittedTable, ...]:
    """Return the tables of a tier."""
    found = (CANCER, DIGITS) if tier == "smoke" else TABLES
    return tuple(problem.at(tier) for problem in found)


def estimators_at(tier: str) -> tuple[Estimator, ...]:
    """Return the classifiers of a tier."""
    return ESTIMATORS[:1] if tier == "smoke" else ESTIMATORS


def standing(
    rows: Sequence[Row], problem: FittedTable, metric: Unit
) -> tuple[Row, ...]:
    """Return those of some rows that suit a problem and a metric."""
    return tuple(row for row in rows if not row.why_not(problem, metric))


def tuned(tier: str) -> Table:
    """Return the table of tuned decisions at a tier."""
    problems, estimators = tables_at(tier), estimators_at(tier)
    metrics = list(METRICS)[:1] if tier == "smoke" else list(METRICS)
    return table(
        [
            Place(
                problem.name,
                replace(problem, estimator=estimator),
                Unit(metric),
                f"{estimator}/{metric}",
                rows=standing(TOOLS, problem, Unit(metric)),
                asks=ASKS,
            )
            for problem in problems
            for estimator in estimators
            for metric in metrics
        ],
        order=TOOLS,
        title="Tuned decisions of fitted classifiers",
        caption=CAPTION.format(observed=OBSERVED),
        convention="Threshold 0.5 and the likeliest class where nothing is tuned.",
        blocks=tuple(Block(problem.name, problem.label) for problem in problems),
        columns=tuple(
            Column(
                f"{estimator}/{metric}", f"{NAMES[estimator]}, {label}", Unit(metric)
            )
            for estimator in estimators
            for metric, label in METRICS.items()
            if metric in metrics
        ),
        untouched_row=UNTOUCHED.name,
        query_budgets=BUDGETS,
        claims_row=OURS.name,
        notes=(DATA_NOTE, REPLICATES_NOTE),
    )


EXPERIMENTS.register("tuned")(experiment_of("tuned", tuned))
