"""Tools that people tune decisions with: rows of the tables that name them."""

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    LOSS_ONLY,
    UNTOUCHED,
    Run,
    always,
    classes,
    decisions,
    family,
    several_classes,
    two_classes,
)
from benchmarks.runs.spec import Arm, Unit

_row = family(
    "post hoc",
    base=(UNTOUCHED, LOSS_ONLY),
    sees="outputs and labels",
    needs=(classes, decisions),
    compared=False,
)


def _optuna_offsets(problem: Problem, metric: Unit) -> Run:
    return Run(Arm("optuna-offsets", settings={"reach": problem.reach}))


ONE_VS_REST = _row(
    "one-vs-rest",
    "thresholds one against rest",
    run=always(Run(Arm("one-vs-rest"))),
    note="100 thresholds per class, each of them a query of the metric on the class "
    "against the rest; decisions are argmax of probability over threshold",
    needs=(several_classes, decisions),
)
OPTUNA_OFFSETS = _row(
    "optuna-offsets",
    "Optuna, offsets (100 trials)",
    run=_optuna_offsets,
    note="the TPE sampler with its defaults; the first trial is the untouched network",
    compared=True,
)
FAIRLEARN = _row(
    "fairlearn-thresholds",
    "Fairlearn ThresholdOptimizer",
    run=always(Run(Arm("fairlearn-thresholds"))),
    note="accuracy under equalized odds, without a query; some decisions are random",
    needs=(two_classes, decisions),
)
