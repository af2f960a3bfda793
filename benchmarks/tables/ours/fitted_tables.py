"""What tables of fitted classifiers have in common: rows, metrics, words, sizes."""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.problems.fitted.estimators import ESTIMATORS, Estimator
from benchmarks.problems.fitted.pipeline import TRAINED
from benchmarks.problems.fitted.tiers import CANCER, DIGITS, TABLES, FittedTable
from benchmarks.rows.contract import Row
from benchmarks.rows.controls import CROSS_ENTROPY
from benchmarks.runs.spec import Unit

UNTOUCHED = replace(CROSS_ENTROPY, name="untouched", label="as fitted", paper={})
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
