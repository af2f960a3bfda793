"""Networks that another loss or a method of the papers trains, and what is on top."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.problems.images.tiers import Images
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    UNTOUCHED,
    Row,
    Run,
    always,
    family,
    only,
    register,
    two_classes,
)
from benchmarks.rows.controls import CROSS_ENTROPY, DENSE, LOSS_ONLY_ROW, finetuned
from benchmarks.rows.metricopt import METRICOPT
from benchmarks.runs.spec import Arm, Unit

WARM_LOSSES = ("aucpr", "pairwise-aucroc")
"""Losses that ResNet-32 goes on with after cross-entropy."""
WITH_LOSSES = ("Table 1", "Table 2")
"""Tables of the paper with MetricOpt on top of another loss."""


_network = family("networks", base=(UNTOUCHED,), compared=False)


def _learned_surrogate(problem: Problem, metric: Unit) -> Run:
    epochs = problem.size.surrogate_epochs
    schedule = {"epochs": epochs, "batch_size": 100, "learning_rate": 1e-3}
    return Run(Arm("network", "learned-surrogate", schedule=schedule))


LOVASZ_LOSS = {"loss": "lovasz-softmax", "pretrain_epochs": 2}
LOVASZ = _network(
    "lovasz",
    "Lovasz-Softmax (LO)",
    always(Run(Arm("network", "surrogate-loss", LOVASZ_LOSS))),
    paper={"Table 3": "lo"},
    needs=(two_classes, only("jaccard")),
)
GRID = {"epochs": 2, "learning_rate": 1e-3}
COST_SENSITIVE = _network(
    "cost-sensitive",
    "cost-sensitive F (CS)",
    always(Run(Arm("network", "cost-sensitive", schedule=GRID, from_theta=True))),
    paper={"Table 3": "cs"},
    note="each grid point is fine-tuned from theta rather than trained afresh",
    needs=(two_classes, only("f1")),
)
LEARNED_SURROGATE = _network(
    "learned-surrogate",
    "learned surrogate (SL)",
    _learned_surrogate,
    paper={"Table 3": "sl"},
    note="its queries are made on mini-batches of 100",
    needs=(two_classes,),
)


register(LOVASZ, COST_SENSITIVE, LEARNED_SURROGATE)


def _on(loss: str, *, warm: bool = False) -> Callable[[Problem], Problem]:
    """Return the change of a problem to the network that a loss trains.

    Args:
        loss: name of the loss.
        warm: whether its training goes on from the cross-entropy network.
    """

    def on(problem: Problem) -> Problem:
        assert isinstance(problem, Images)
        late = problem.network.network == "resnet32" and loss in WARM_LOSSES
        return problem.trained(loss, warm=warm or late)

    return on


def network(
    name: str, label: str, loss: str, paper: Mapping[str, str], **more: Any
) -> Row:
    """Return the row of the network that a loss trains, untouched."""
    known = {"paper": paper, "on": _on(loss), **more}
    return _network(name, label, CROSS_ENTROPY.run, **known)


def longer() -> Row:
    """Return the row of the network whose training goes on with cross-entropy."""
    return network(
        "longer",
        "CE, 6 more epochs",
        "cross-entropy",
        {},
        note="control for the networks that are trained from cross-entropy for as long",
        on=_on("cross-entropy", warm=True),
    )


def blackbox(loss: str, words: str) -> Row:
    """Return the row of black-box differentiation with a loss."""
    return network(
        "blackbox",
        "black-box differentiation",
        loss,
        {"Table 1": "blackbox", "Table 2": "blackbox"},
        note=f"trained from the cross-entropy network, {words}",
        on=_on(loss, warm=True),
    )


def fine_tuned(loss: str, label: str, *also: Row) -> tuple[Row, ...]:
    """Return fine-tuning of such a network: loss alone, dense, MetricOpt.

    Args:
        loss: name of the loss, which names of rows begin with.
        label: name of the loss as printed.
        *also: rows of MetricOpt with other optimizers than SGD, as they stand below it.
    """
    last, dense = f"{loss}-loss-only", f"{loss}-dense"
    tested = {"base": (last,), "rival_row": dense}

    def row(name: str, text: str, like: Row, **more: Any) -> Row:
        known = {"family": "metricopt", "run": like.run, "on": _on(loss)}
        return finetuned(name, text, **known, **more)

    def on_top(like: Row) -> Row:
        shown = {name: like.paper[name] for name in WITH_LOSSES if name in like.paper}
        paper = {name: f"{known}-{loss}" for name, known in shown.items()}
        name, text = f"{loss}-{like.name}", f"{like.label} + {label}"
        return row(name, text, like, paper=paper, note=like.note, **tested)

    return (
        row(last, f"{label} fine-tune, last step", LOSS_ONLY_ROW),
        row(dense, f"{label} fine-tune, dense eval", DENSE, **tested),
        *(on_top(like) for like in (METRICOPT, *also)),
    )
