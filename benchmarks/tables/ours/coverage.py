"""Does the interval hold? Claimed against true gains on tables. Ours.

`found.expected` is a gain with an interval of 95 %. Gains are claimed where they look
large, so that an interval that ignores the choice holds too rarely, and its middle is
too high. Test splits are 8 to 130 times as large as observe, so that the gain on test
stands for the true one.
"""

from dataclasses import replace
from itertools import product

from benchmarks.problems.fitted.estimators import Estimator
from benchmarks.problems.fitted.pipeline import FittedSettings
from benchmarks.problems.fitted.tiers import (
    COVER,
    DIGITS,
    INCOME,
    OCCUPATION,
    PINE,
    RARE,
    WORK,
    FittedTable,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.rows.on_outputs import OURS
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import RunSpec, Unit
from benchmarks.tables.ours.fitted_tables import (
    CAPTION,
    CONVENTION,
    DATA_NOTE,
    METRICS,
    NAMES,
    REPLICATES_NOTE,
    SETTINGS_NOTES,
    UNTOUCHED,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

SIZES = (300, 1_000, 3_000)
"""Examples to observe."""
TABLES = (INCOME, WORK, OCCUPATION, COVER, PINE, RARE)
ESTIMATORS: tuple[Estimator, ...] = ("logistic", "boosting")
ROWS = (UNTOUCHED, OURS)
ASKS = "this table asks whether claims hold"

NOTES = (
    *SETTINGS_NOTES,
    DATA_NOTE,
    REPLICATES_NOTE,
    "Of one classifier the 300 observed examples are among the 1,000, and "
    "these among the 3,000, so that calls are not independent.",
)


def coverage(tier: str) -> Table:
    """Return the table of claims at a tier."""
    smoke = tier == "smoke"
    sizes = (100, 400) if smoke else SIZES
    problems = (DIGITS,) if smoke else TABLES
    estimators = ESTIMATORS[:1] if smoke else ESTIMATORS
    metrics = list(METRICS)[:1] if smoke else list(METRICS)
    return table(
        [
            Place(
                _block(size, problem).name,
                replace(problem.at(tier), estimator=estimator, observed=size),
                Unit(metric),
                f"{estimator}/{metric}",
                rows=ROWS,
                asks=ASKS,
            )
            for size in sizes
            for problem, estimator, metric in product(problems, estimators, metrics)
        ],
        title="Claimed and true gains",
        caption=CAPTION.format(
            observed="As many further ones as the block says are observed."
        ),
        convention=CONVENTION,
        blocks=tuple(_block(*each) for each in product(sizes, problems)),
        columns=tuple(
            Column(
                f"{estimator}/{metric}",
                f"{NAMES[estimator]}, {METRICS[metric]}",
                Unit(metric),
            )
            for estimator, metric in product(estimators, metrics)
        ),
        untouched_row=UNTOUCHED.name,
        query_budgets=(),
        observed_of=observed_of,
        claims_row=OURS.name,
        notes=NOTES,
    )


def _block(size: int, problem: FittedTable) -> Block:
    return Block(f"{problem.name}-{size}", f"{problem.label}, {size:,} to observe")


def observed_of(spec: RunSpec) -> int:
    """Return the examples of the observe split of a run."""
    return decode(FittedSettings, spec.pipeline.settings).observed


EXPERIMENTS.register("coverage")(experiment_of("coverage", coverage))
