"""Post-hoc shifts of the untouched network's decisions, without training.

A budget of 0 leaves the number of queries to the arm.
"""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    LOSS_ONLY,
    UNTOUCHED,
    Row,
    Run,
    always,
    classes,
    decisions,
    family,
    register,
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


def _shift(name: str, label: str, note: str = "", **more: Any) -> Row:
    return _row(name, label, note=note, **{"run": always(Run(Arm(name))), **more})


def _class_offsets(problem: Problem, metric: Unit) -> Run:
    return Run(Arm("class-offsets", settings={"reach": problem.reach}))


HIDDEN = "needs the scores of the network, which a black box hides"

THRESHOLD_SHIFT = _shift(
    "threshold-shift",
    "threshold shift",
    f"tries every threshold on the observe split; {HIDDEN}",
    needs=(two_classes, decisions),
    is_primary=True,
)
CLASS_OFFSETS = _shift(
    "class-offsets",
    "class offsets",
    f"post hoc; {HIDDEN}",
    run=_class_offsets,
    needs=(several_classes, decisions),
    compared=True,
    is_brief=True,
)
PRIOR_CORRECTION = _shift(
    "prior-correction",
    "prior correction",
    "the logits take the class shares of observe for those of training",
    compared=True,
)
CW_PLUGIN = _shift(
    "cw-plugin",
    "class weights, pair by pair",
    "line searches over pairs of classes; queries on chosen examples, which a "
    "black box does not offer",
    needs=(several_classes, decisions),
)
CMA_OFFSETS = _shift("cma-offsets", "class offsets by CMA-ES", compared=True)
THRESHOLD_GRID = _shift(
    "threshold-grid",
    "threshold grid",
    "100 thresholds, as scikit-learn's TunedThresholdClassifierCV tries them",
    needs=(two_classes, decisions),
)
LOGIT_ADJUSTMENT = _shift(
    "logit-adjustment",
    "logit adjustment",
    "11 values of tau; logits lose tau times the logarithm of their class's share",
    compared=True,
)
FW_EG = _shift("fw-eg", "FW-EG", sees="edited predictions")

register(
    THRESHOLD_SHIFT,
    CLASS_OFFSETS,
    PRIOR_CORRECTION,
    CW_PLUGIN,
    CMA_OFFSETS,
    THRESHOLD_GRID,
    FW_EG,
)
