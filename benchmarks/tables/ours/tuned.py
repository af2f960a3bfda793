"""Against the tools people use: decisions of fitted classifiers, tuned for a metric.

Tables with classifiers of scikit-learn; every row sees the outputs on the observe split
and moves decisions alone.
"""

from dataclasses import replace

from benchmarks.problems.fitted.pipeline import OBSERVED
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows.on_outputs import OURS
from benchmarks.rows.post_hoc import (
    CLASS_OFFSETS,
    CMA_OFFSETS,
    LOGIT_ADJUSTMENT,
    THRESHOLD_GRID,
)
from benchmarks.rows.tuners import ONE_VS_REST, OPTUNA_OFFSETS
from benchmarks.runs.spec import Unit
from benchmarks.tables.ours.fitted_tables import (
    ASKS,
    CAPTION,
    CONVENTION,
    DATA_NOTE,
    METRICS,
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
NOTES = (
    *SETTINGS_NOTES,
    DATA_NOTE,
    REPLICATES_NOTE,
    "Breast cancer has 94 examples to observe: there chance decides.",
)


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
        caption=CAPTION.format(observed=SIXTH.format(most=f"{OBSERVED:,}")),
        convention=CONVENTION,
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
        query_budgets=(),
        summed={
            "two classes": tuple(p.name for p in problems if p.classes == 2),
            "several classes": tuple(p.name for p in problems if p.classes > 2),
        },
        notes=NOTES,
    )


EXPERIMENTS.register("tuned")(experiment_of("tuned", tuned))
