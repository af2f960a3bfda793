"""Networks of photographs, each trained in another way: both papers' Table 4."""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.problems.photographs import tiers
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import UNTOUCHED, Row, Run, always
from benchmarks.rows.controls import CROSS_ENTROPY
from benchmarks.runs.spec import Arm

RMSPROP = replace(
    CROSS_ENTROPY,
    name="rmsprop",
    label="RMSProp + CE, untouched (phi = 0)",
    paper={"Table 4": "rmsprop", "ALA Table 4": "rmsprop"},
)
ALA_NOTE = (
    "the loss is ours, without the sigmoid of the paper's; one network trains under a "
    "controller"
)


def powersign(tier: str) -> Row:
    """Return the row of the network that PowerSign-cd trains."""
    return Row(
        "powersign",
        "PowerSign-cd",
        "networks",
        run=CROSS_ENTROPY.run,
        base=(UNTOUCHED,),
        paper={"Table 4": "powersign-cd", "ALA Table 4": "powersign-cd"},
        note="another network, trained with it from the start",
        compared=False,
        on=_on(lambda problem: problem.trained(tiers.POWERSIGN[tier])),
    )


def ala(tier: str, *, transferred: bool) -> Row:
    """Return the row of the network that ALA trains.

    Args:
        tier: decides its settings.
        transferred: whether the policy is that of CIFAR-10, or learns here.
    """
    name = tiers.TRANSFERRED if transferred else tiers.ALA
    return Row(
        name,
        "RMSProp + ALA" + (", policy of CIFAR-10" if transferred else ""),
        "networks",
        run=always(Run(Arm("theta", "ala"))),
        base=(UNTOUCHED,),
        paper={"ALA Table 4": name},
        note=(
            "the policy that `ala` of `learned-losses` ended with, which stays as it "
            "is and makes no query; the paper's was learned with DenseNet"
            if transferred
            else ALA_NOTE
        ),
        compared=False,
        on=_on(lambda problem: problem.by_ala(tier, transferred=transferred)),
    )


def _on(change: Callable[[tiers.ImageNet], Problem]) -> Callable[[Problem], Problem]:
    """Return the change of a problem to another network of the same photographs."""

    def on(problem: Problem) -> Problem:
        assert isinstance(problem, tiers.ImageNet)
        return change(problem)

    return on
