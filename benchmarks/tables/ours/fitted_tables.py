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
ASKS = "is not one of the additions to known outputs compared here"
CAPTION = (
    "Half of the examples are the test split. Classifiers are fitted to a third of "
    f"all, {TRAINED:,} at most. {{observed}} Every query of a metric counts, on "
    "whatever labels."
)
CONVENTION = "Threshold 0.5 and the likeliest class where nothing is tuned."
SIXTH = "A further sixth, {most} at most, is observed."
SETTINGS_NOTES = (
    "Logistic regression takes up to 1,000 steps; boosting has scikit-learn's "
    "defaults; the MLP has 64 units, and stops early on more than 1,000 examples. "
    "Features are standardised but for boosting.",
    "All rows see outputs on observe and move decisions by offsets alone. Searches of "
    "offsets stay within 5: class offsets try 41 values for one class after the other, "
    "three passes at most; Optuna draws from the whole range, its first trial is 0, "
    "and the first class stays at 0; CMA-ES starts with steps of .5.",
)
DATA_NOTE = (
    "Class of work and occupation are predicted from the other attributes of A9A, but "
    "income; values of fewer than 100 people are left out. CoverType, class 2 and "
    "classes 4 to 6: against the rest."
)
REPLICATES_NOTE = (
    "Replicates share the test split. They differ in the examples of train and "
    "observe, and so in the classifier; of small tables these are largely the same. "
    "The tables are made of four data sets. A sign tells of these splits, not of other "
    "data sets."
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
