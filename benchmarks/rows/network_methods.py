"""Networks that methods train towards a metric, and MetricOpt on top of them.

A training takes minutes, so tables name the methods that they train.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.problems.by_method import ByMethod
from benchmarks.problems.images.method_networks import CE
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import Row, Run
from benchmarks.rows.controls import finetuned
from benchmarks.rows.metricopt import metricopt
from benchmarks.rows.on_outputs import SHORT, ours
from benchmarks.runs.spec import Arm, Unit

Labelled = tuple[str, Mapping[str, str]]

LABELS: dict[str, Labelled] = {
    CE: (
        "cross-entropy",
        {
            "ALA Table 1": "ce",
            "ALA Table 2": "ce",
            "ALA Table 5": "ce",
            "ReLoss": "ce",
            "ReLoss reading": "ce",
        },
    ),
    "mse": ("squared error", {"ReLoss pose": "mse"}),
    "self-paced": (
        "self-paced, within the mini-batch",
        {"ALA Table 1": "self-paced"},
    ),
    "self-paced-global": (
        "self-paced, one threshold",
        {"ALA Table 1": "self-paced"},
    ),
    "large-margin": ("large-margin softmax", {"ALA Table 1": "large-margin"}),
    "pairwise-aucroc": ("pairwise AUCROC loss", {"ALA Table 2": "aucroc"}),
    "aucpr": ("AUCPR loss", {"ALA Table 2": "aucpr"}),
    "l2t-dlf": (
        "L2T-DLF (our loss)",
        {"Table 1": "l2t-dlf", "ALA Table 1": "l2t-dlf"},
    ),
    "moew": ("MOEW", {"Table 1": "moew", "Table 2": "moew"}),
    "ala-noise": ("ALA (our loss), random matrix", {"ALA Table 1": "ala-noise"}),
    "ala-walk": ("ALA (our loss), actions drawn evenly (ours)", {}),
    "ala-confusion": (
        "ALA (our loss), confusion matrix",
        {"ALA Table 1": "ala-confusion"},
    ),
    "ala-level": ("ALA (our loss), best of four fixed levels (ours)", {}),
    "ala": (
        "ALA (our loss), one network",
        {"ALA Table 1": "ala-single", "ALA Table 5": "ala"},
    ),
    "ala-multi": (
        "ALA (our loss), several networks",
        {
            "Table 1": "ala",
            "Table 2": "ala",
            "ALA Table 1": "ala",
            "ALA Table 2": "ala",
        },
    ),
    "ala-literal-fixed": ("ALA, loss parameters fixed (ours)", {}),
    "ala-literal": ("ALA, one network", {"ALA Table 1": "ala-single"}),
    "ala-reuse": (
        "ALA (our loss), 2nd run with the policy of the 1st",
        {"ALA Table 5": "ala-reuse"},
    ),
    "ala-finetune": (
        "ALA (our loss), 2nd run, the policy learns on",
        {"ALA Table 5": "ala-finetune"},
    ),
    "ala-loss": ("ALA (our loss), rewarded by the loss on observe", {}),
    "ala-train": ("ALA (our loss), rewarded by the metric on training images", {}),
    "ala-train-loss": ("ALA (our loss), rewarded by the loss on training images", {}),
    "reloss": (
        "ReLoss",
        {"ReLoss": "reloss", "ReLoss pose": "reloss", "ReLoss reading": "reloss"},
    ),
    "reloss-anchored": ("ReLoss, anchored (ours)", {}),
    "reloss-regression": ("ReLoss by regression", {}),
}
"""Methods by name: the label, and the row of each paper's table."""
REWARDED_ON_TRAIN = (
    "as many training images as are observed, without augmentation; all of them in the "
    "paper"
)
NOTES = {
    "l2t-dlf": "the teacher sees labels of the observe split, not the metric",
    "ala-multi": "one of the networks that share the controller; the steps and seconds "
    "of all are counted",
    "ala-literal": "eq. 6 as printed, times 4; our loss has no sigmoid, and a negative "
    "parameter is a weight of log(1 - p)",
    "moew": "one query a trial; a trial is a shorter training from the same weights",
    "ala-level": "a ceiling: one loss parameter for all pairs of classes; at tier "
    "local the best of four short trainings on observe, elsewhere .1",
    "ala-literal-fixed": "eq. 6 as printed, times 4, with the identity all along: does "
    "a network learn by it?",
    "ala-walk": "the actions of a policy, drawn evenly: one that has learned something "
    "must be better",
    "ala-confusion": "eq. 7 in units of log C, at most 1. Most pairs of different "
    "classes reach 1, and true classes fall below it: strong label smoothing",
    "ala-train": REWARDED_ON_TRAIN,
    "ala-train-loss": REWARDED_ON_TRAIN,
    "reloss": "trains twice: first with cross-entropy, to record logits",
    "reloss-anchored": "|h(p) - h(1)| instead of |h(p)|; ours",
    "reloss-regression": "the surrogate learns values instead of ranks",
}
MAIN = (CE, "mse", "ala", "reloss")
"""Methods whose networks have all replicates where others have few."""


def _on(method: str) -> Any:
    """Return the change of a problem to the network that a method trains."""

    def on(problem: Problem) -> Problem:
        assert isinstance(problem, ByMethod)
        return problem.by(method)

    return on


def trained(method: str, *, base: str, name: str = "") -> Row:
    """Return the row of the network that a method trains.

    Args:
        method: name of the method in `LABELS`.
        base: row it is tested against, but for that row itself.
        name: name of the row; empty for that of the method.
    """
    label, paper = LABELS[method]

    def run(problem: Problem, metric: Unit) -> Run:
        assert isinstance(problem, ByMethod)
        # The arm names what trained the network.
        return Run(Arm("theta", problem.trained_by))

    return Row(
        name or method,
        label,
        "networks",
        run=run,
        base=() if (name or method) == base else (base,),
        paper=paper,
        note=NOTES.get(method, ""),
        compared=False,
        is_primary=method in MAIN,
        is_pictured=True,
        on=_on(method),
    )


def on_top(method: str) -> tuple[Row, Row]:
    """Return the rows of MetricOpt, and of MetricOpt on outputs, on its network."""
    label, _ = LABELS[method]
    known: dict[str, Any] = {
        "family": "on outputs",
        "base": (method,),
        "on": _on(method),
        "compared": False,
        "is_pictured": True,
    }
    return (
        finetuned(
            f"{method}+metricopt", f"{label} + MetricOpt", run=metricopt(), **known
        ),
        Row(
            f"{method}+metricopt-outputs",
            f"{label} + MetricOpt on outputs",
            run=ours(),
            sees="outputs and labels",
            short=SHORT,
            **known,
        ),
    )
