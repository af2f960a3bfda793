"""Short trainings by which settings of network methods are chosen, on observe alone.

Every method that is tuned has four: its usual settings at three rates, and a fourth
rate or one alternative at the usual rate. ALA as printed has two lower rates besides,
as these four trained nothing. A fixed level has four values. A trial at
tier local has ten epochs: of ResNet-9, which the tables train, for the forms of ALA and
ReLoss; of ResNet-20 for the methods tried before them. What each
reached is a line of a file; what is chosen stands in `method_networks`, and a test
compares both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import nn

from benchmarks.problems.images.course import ImageMethodTraining
from benchmarks.problems.images.method_networks import (
    CE,
    LOSSES,
    WHOLE,
    MethodImages,
    MethodNetwork,
    MethodSize,
    Tuned,
)
from benchmarks.problems.images.theta import ImageThetaSpec
from benchmarks.problems.images.tiers import cifar10
from benchmarks.problems.pretrained.trial_file import TrialFile, reached
from benchmarks.runs.codec import merged

FILE = TrialFile("learned-losses")
EPOCHS = {"local": 10}
"""Epochs of a trial; elsewhere one."""
TRIED_FIRST = ("ce", "self-paced", "self-paced-global", "large-margin", "l2t-dlf")
"""Methods whose trials at tier local have ResNet-20; a choice is within a method."""
OBSERVED = 5_000
"""Images of the observe split at tier local, where settings are chosen."""
RATES = (0.5, 1.0, 2.0)
"""Rates that are tried, in units of the usual one."""
LOWER, LOW, HIGH = (Tuned(rate=rate) for rate in (0.02, 0.05, 0.8))
UNTRAINED = 0.8
"""If the least error of a method is above it, none of its trials trained anything."""
PAPERS_ALA = Tuned(settings={"period": 200, "measured": 4})
RECORDING = {"recording": 0.4, "fitting": {"epochs": 20}}
"""As many steps of fitting as in the tables, from a recording that is shorter."""
LEVELS = {"ala-level": [Tuned(settings={"level": x}) for x in (-1.0, -0.3, 0.1, 0.3)]}
"""A ceiling of ALA: the best of four loss parameters of pairs, at the usual rate."""
ALTERNATIVES: Mapping[str, Sequence[Tuned]] = {
    CE: [LOW],
    "self-paced": [Tuned(settings={"start": 0.8})],
    "self-paced-global": [Tuned(settings={"start": 0.8})],
    "large-margin": [LOW],
    "l2t-dlf": [Tuned(settings={"literal": True})],
    # None of its first four trained anything.
    "ala-literal": [PAPERS_ALA, LOW, LOWER],
    "ala": [PAPERS_ALA],
    "reloss": [LOW],
    "reloss-anchored": [LOW],
    "reloss-regression": [LOW],
    "pairwise-aucroc": [LOW],
    # Its gradient is a ninth of cross-entropy's.
    "aucpr": [HIGH],
}
"""What is tried beside the rates, for the methods that are tuned.

Methods in `FORM_OF` have what is chosen for another one. MOEW, whose 40 trials are a
search of their own, has the settings of cross-entropy.
"""
KEPT = (
    "observe_mcr",
    "observe_aucpr",
    "seconds",
    "core_seconds",
    "precision",
    "environment",
)
"""What is kept of a trial, of the facts of its network."""


class _Course(ImageMethodTraining):
    """The course of a trial, whose loss surfaces nobody looks at."""

    def surface(self, network: nn.Module, number: int) -> list[float]:
        """Return no loss surface: one takes half as long as an epoch."""
        return []


class _TrialSpec(ImageThetaSpec):
    course = _Course


@dataclass(frozen=True)
class Trial:
    """A short training.

    Attributes:
        method: name of the method, see `method_networks`.
        tuned: what is tried.
        network: what trains.
    """

    method: str
    tuned: Tuned
    network: ImageThetaSpec

    @property
    def line(self) -> str:
        """What is kept of it: settings, the error on observe, time and machine."""
        settings = {"method": self.method, **asdict(self.tuned)}
        return reached(self.network, settings, KEPT, {"observe_mcr": 1.0})


def trials(tier: str = "local") -> list[Trial]:
    """Return the trials of all methods that are tuned, on the first replicate."""
    data = MethodImages.of(cifar10(tier), tier, whole=True).here(offline=True).data
    size = _size(tier)
    rates = [Tuned(rate=factor * size.pretraining.rate) for factor in RATES]
    tuned_by = {name: [*rates, *others] for name, others in ALTERNATIVES.items()}
    found = []
    for method, tried in (tuned_by | LEVELS).items():
        is_first = tier == "local" and method in TRIED_FIRST
        own = _first_size(size) if is_first else size
        for tuned in tried:
            network = MethodNetwork(method, whole=not is_first)
            backbone = network.sized(replace(own, tuned={method: tuned}), data)
            found.append(Trial(method, tuned, _TrialSpec(data, backbone, 0)))
    # Those of another table are last.
    return sorted(found, key=lambda trial: trial.method in LOSSES)


def _size(tier: str) -> MethodSize:
    """Return the sizes of a table, but for shorter trainings."""
    usual = WHOLE[tier]
    short = replace(usual.pretraining, epochs=EPOCHS.get(tier, 1))
    recording = RECORDING if tier == "local" else {}
    methods = {"reloss": merged(usual.methods["reloss"], recording)}
    return replace(usual, pretraining=short, methods={**usual.methods, **methods})


def _first_size(size: MethodSize) -> MethodSize:
    """Return what the methods that were tried first had at tier local."""
    return replace(
        size,
        network="resnet20",
        pretraining=replace(size.pretraining, shift=None),
        # The usual rate of the teacher.
        methods={"l2t-dlf": {"students": 1, "teaching_epochs": 3}},
    )


def cost(line: Mapping[str, Any]) -> float:
    """Return what a choice lowers: the error, or 1 - AUCPR for a loss of that area."""
    if line["method"] in LOSSES and "diverged" not in line:
        return 1 - float(line["observe_aucpr"])
    return float(line["observe_mcr"])


def best(method: str, tried: Sequence[Mapping[str, Any]]) -> Tuned | None:
    """Return what is chosen for a method; None where none was tried.

    That is what had the least `cost`, if the usual settings had more by over the
    standard error of a difference. Otherwise it is the usual settings: most differences
    that small are chance, and the greatest rates gain most from a training that is cut
    short. The usual settings also stay if no trial trained anything.
    """
    own = [line for line in tried if line["method"] == method]
    if not own:
        return None
    least = min(own, key=cost)
    if cost(least) > UNTRAINED:
        return Tuned()
    usual = WHOLE["local"].pretraining.rate
    for line in own:
        reached_cost = cost(line)
        # Exact for an error; AUCPR varies about as much.
        chance = math.sqrt(2 * reached_cost * (1 - reached_cost) / OBSERVED)
        gain = reached_cost - cost(least)
        if (line["rate"], line["settings"]) == (usual, {}) and gain <= chance:
            return Tuned()
    return Tuned(least["rate"], least["settings"])
