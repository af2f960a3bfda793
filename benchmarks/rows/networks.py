"""Networks that a method of the papers trains towards one metric of two classes."""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import UNTOUCHED, Fill, Row, Run, register
from benchmarks.rows.needs import only, two_classes
from benchmarks.runs.spec import Arm, Unit


def _trained(name: str, label: str, run: Fill, paper_row: str, **more: Any) -> Row:
    return Row(
        name,
        label,
        "networks",
        run=run,
        base=(UNTOUCHED,),
        paper={"Table 3": paper_row},
        compared=False,
        **more,
    )


def _lovasz(problem: Problem, metric: Unit) -> Run:
    settings = {"loss": "lovasz-softmax", "pretrain_epochs": 2}
    return Run(Arm("network", "surrogate-loss", settings))


def _cost_sensitive(problem: Problem, metric: Unit) -> Run:
    schedule = {"epochs": 2, "learning_rate": 1e-3}
    return Run(Arm("network", "cost-sensitive", schedule=schedule, from_theta=True))


def _learned_surrogate(problem: Problem, metric: Unit) -> Run:
    epochs = problem.size.surrogate_epochs
    schedule = {"epochs": epochs, "batch_size": 100, "learning_rate": 1e-3}
    return Run(Arm("network", "learned-surrogate", schedule=schedule))


LOVASZ = _trained(
    "lovasz",
    "Lovasz-Softmax (LO)",
    _lovasz,
    "lo",
    needs=(two_classes, only("jaccard")),
)
COST_SENSITIVE = _trained(
    "cost-sensitive",
    "cost-sensitive F (CS)",
    _cost_sensitive,
    "cs",
    note="each grid point is fine-tuned from theta rather than trained afresh",
    needs=(two_classes, only("f1")),
)
LEARNED_SURROGATE = _trained(
    "learned-surrogate",
    "learned surrogate (SL)",
    _learned_surrogate,
    "sl",
    note="its queries are made on mini-batches of 100",
    needs=(two_classes,),
)

register(LOVASZ, COST_SENSITIVE, LEARNED_SURROGATE)
