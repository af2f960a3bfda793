"""The image protocol, shared by Tables 1 and 2 and the mismatch experiment.

A convolutional network pre-trained with a surrogate loss, FiLM of d = 128 parameters on
its last feature map, and T steps of fine-tuning with K = 5 % of T queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.layout import Block
from benchmarks.protocol import Arm, Place, resolve
from benchmarks.records import RunSpec

CONVENTION = "45,000 images to train, 5,000 to observe, 10,000 to test."
BLOCKS = (Block("natural", "natural sampling"),)

REVISION = 1
"""Raised when code changes numbers, so that no old record is taken for a new one."""

PRETRAINING_REVISION = 1
"""Raised when code changes pre-trained networks, so that no old one is taken."""


@dataclass(frozen=True)
class Problem:
    """An image problem made of a data set.

    Attributes:
        name: as in column names.
        dataset: name of the data set.
        imbalance: see `image_data.load_problem`.
        label_noise: see `image_data.load_problem`.
    """

    name: str
    dataset: str
    imbalance: int = 1
    label_noise: float = 0.0

    def settings(self, variant: str) -> dict[str, Any]:
        """Return the problem as settings of a spec."""
        return {
            "dataset": self.dataset,
            "variant": variant,
            "imbalance": self.imbalance,
            "label_noise": self.label_noise,
            "max_examples": None,
        }


@dataclass(frozen=True)
class Backbone:
    """A network and how it was trained.

    Attributes:
        network: name of an image network.
        loss: name of a loss.
        warm: whether training goes on from the cross-entropy network rather than from
            random weights; ranking losses say little about those.
    """

    network: str
    loss: str = "cross-entropy"
    warm: bool = False


@dataclass(frozen=True)
class Size:
    """How large a tier is.

    Attributes:
        replicates: own split and theta each.
        meta_tests: fine-tuning runs per replicate.
        search_tests: searches by queries per replicate.
        steps: of fine-tuning, T.
        observations: of a trajectory, K.
        tasks: trajectories of meta-training.
        examples: training images used in fine-tuning.
        batch_size: of fine-tuning.
    """

    replicates: int = 1
    meta_tests: int = 10
    search_tests: int = 2
    steps: int = 100
    observations: int = 5
    tasks: int = 480
    examples: int = 10_000
    batch_size: int = 128

    @property
    def queries(self) -> int:
        """What MetricOpt spends, choosing its step included; searches may as much."""
        return self.tasks * self.observations + 20

    @property
    def oracle(self) -> int:
        """Queries of an oracle: of 50 dense fine-tunings, and of two searches."""
        return max(50 * self.steps, 2 * self.queries)


SIZES = {
    "paper": Size(steps=200, observations=10, tasks=1_000, examples=45_000),
    "local": Size(),
    "smoke": Size(
        meta_tests=2,
        search_tests=1,
        steps=10,
        observations=2,
        tasks=16,
        examples=500,
        batch_size=32,
    ),
}

FILM = {"kind": "film", "form": "direct", "sites": None, "size": None}
"""64 scales and 64 shifts on the last normalisation layer of ResNet-32."""

CLASSIC = {
    # 64,000 steps of 128 images, of which an epoch of 45,000 has 351.
    "epochs": 182,
    "batch_size": 128,
    "rate": 0.1,
    "schedule": "steps",
    "momentum": 0.9,
    "nesterov": False,
    "weight_decay": 1e-4,
}
SHORT = {
    "epochs": 24,
    "batch_size": 128,
    "rate": 0.2,
    "schedule": "one-cycle",
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 5e-4,
}
LOSS_SETTINGS: dict[str, dict[str, Any]] = {
    "large-margin": {
        "margin": 4,
        # The authors' power rule for augmented images, over their 12,000 steps; it
        # nears 5, where it would stop, at the end.
        "annealing": {"start": 1000.0, "gamma": 1e-5, "least": 5.0, "steps": 12_000},
    },
}


def pretraining(tier: str, problem: Problem, backbone: Backbone) -> dict[str, Any]:
    """Return how a network of a tier is trained."""
    if problem.dataset == "digits":
        return SHORT | {"epochs": 2 if backbone.warm else 6, "batch_size": 32}
    if backbone.warm:
        return SHORT | {"epochs": 6, "rate": 0.02}
    if tier == "paper":
        return CLASSIC
    if backbone.network == "small":
        return SHORT | {"epochs": 20, "rate": 0.05}
    if problem.imbalance > 1:
        # A quarter of the images makes an epoch.
        return SHORT | {"epochs": 40}
    if problem.label_noise:
        # Longer schedules learn the wrong labels by heart.
        return SHORT | {"epochs": 12}
    return SHORT | {"epochs": 40 if backbone.loss == "cross-entropy" else 24}


def backbone_settings(
    tier: str, problem: Problem, backbone: Backbone
) -> dict[str, Any]:
    """Return a backbone as settings of a spec, what it goes on from included."""
    start = replace(backbone, loss="cross-entropy", warm=False)
    return {
        "network": backbone.network,
        "classes": 10,
        "loss": backbone.loss,
        "loss_settings": LOSS_SETTINGS.get(backbone.loss, {}),
        "pretraining": pretraining(tier, problem, backbone),
        "revision": PRETRAINING_REVISION,
        "start": backbone_settings(tier, problem, start) if backbone.warm else None,
    }


def network_label(tier: str) -> str:
    """Return what captions call the network of a tier."""
    return "small network on digits" if tier == "smoke" else "ResNet-32 on CIFAR-10"


@dataclass(frozen=True)
class Setting:
    """What a column is about, its metric excepted.

    Attributes:
        column: name of the column.
        problem: the images.
        variant: of the data set.
        backbone: the network.
        adapter: settings of its FiLM other than the usual ones.
    """

    column: str
    problem: Problem
    variant: str
    backbone: Backbone
    adapter: Mapping[str, Any] = field(default_factory=dict)


def spec(place: Place, setting: Setting, arm: Arm, size: Size | None = None) -> RunSpec:
    """Return the fully resolved spec of one run, by default at its tier's size."""
    size = size or SIZES[place.tier]
    problem, backbone = setting.problem, setting.backbone
    bench = {
        "problem": problem.settings(setting.variant),
        "sampling": "natural",
        "backbone": backbone_settings(place.tier, problem, backbone),
        "adapter": FILM | dict(setting.adapter),
        "finetune": {"batch_size": size.batch_size, "examples": size.examples},
        "revision": REVISION,
    }
    return resolve(place, setting.column, bench, arm, steps=size.steps)


def repeated(
    place: Place, setting: Setting, arm: Arm, replicates: int | None
) -> list[RunSpec]:
    """Return the specs of a place, one per replicate; None for its tier's number."""
    count = replicates or SIZES[place.tier].replicates
    return [
        spec(replace(place, replicate=replicate), setting, arm)
        for replicate in range(count)
    ]
