"""Image problems of ten or more classes, and the sizes of their tiers.

A convolutional network pre-trained with a surrogate loss, FiLM of d = 128 parameters on
its last feature map, and T steps of fine-tuning with K = 5 % of T queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from benchmarks.data.registry import find_source
from benchmarks.problems.images.settings import (
    Finetuning,
    ImageBackbone,
    ImageProblem,
    ImageSettings,
    ImageTraining,
)
from benchmarks.problems.pretrained.settings import DIRECT, FilmSettings
from benchmarks.problems.problem import (
    PAPER,
    SMOKE,
    UNRESOLVED,
    DataProblem,
    FinetuningSize,
    Problem,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Unit

REVISION = 2
"""Raised when code changes numbers, so that no old record is taken for a new one."""

PRETRAINING_REVISION = 1
"""Raised when code changes pre-trained networks, so that no old one is taken.

It was not raised when ALA, L2T-DLF and MOEW changed: their networks of 8,000 images
stand as they were trained until those of all images take their place.
"""

CROSS_ENTROPY = "cross-entropy"
CONVENTION = "45,000 images to train, 5,000 to observe, 10,000 to test."


@dataclass(frozen=True)
class ImageSize(FinetuningSize):
    """How large a tier is.

    Attributes:
        examples: training images used in fine-tuning.
    """

    examples: int = 10_000


SIZES = {
    "paper": ImageSize(**PAPER, examples=45_000),
    "local": ImageSize(),
    "smoke": ImageSize(
        **SMOKE, value_functions=2, tasks=16, examples=500, batch_size=32
    ),
}

FILM_AND_OFFSETS = FilmSettings(offsets=True)
"""The usual adapter, and an offset for every output."""
DIRECT_PHI = {"digit-net": 64, "resnet9": 256}
"""Scales and shifts of networks whose last normalisation has other than 64 channels."""
CLASSIC = ImageTraining(
    # 64,000 steps of 128 images; an epoch of 45,000 images has 351 steps.
    epochs=182,
    rate=0.1,
    schedule="steps",
    nesterov=False,
    weight_decay=1e-4,
)
SHORT = ImageTraining(epochs=24)
LOSS_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "large-margin": {
        "margin": 4,
        # The authors' power rule for augmented images, over their 12,000 steps. It
        # would stop at 5, which it nears at the end.
        "annealing": {"start": 1000.0, "gamma": 1e-5, "least": 5.0, "steps": 12_000},
    }
}


def pretraining(
    tier: str, problem: ImageProblem, backbone: "TrainedNetwork"
) -> ImageTraining:
    """Return how a network of a tier is trained."""
    if problem.dataset == "digits":
        return replace(SHORT, epochs=2 if backbone.warm else 6, batch_size=32)
    if backbone.warm:
        return replace(SHORT, epochs=6, rate=0.02)
    if tier == "paper":
        return CLASSIC
    if backbone.network == "small":
        return replace(SHORT, epochs=20, rate=0.05)
    if problem.imbalance > 1:
        # A quarter of the images makes an epoch.
        return replace(SHORT, epochs=40)
    if problem.label_noise:
        # Longer schedules learn the wrong labels by heart.
        return replace(SHORT, epochs=12)
    return replace(SHORT, epochs=40 if backbone.loss == CROSS_ENTROPY else 24)


@dataclass(frozen=True)
class TrainedNetwork:
    """A network and what it is trained with, for any tier.

    Attributes:
        network: name of an image network.
        loss: name of a loss.
        warm: whether training goes on from the cross-entropy network instead of random
            weights, about which ranking losses say little.
    """

    network: str
    loss: str = CROSS_ENTROPY
    warm: bool = False

    def backbone(self, tier: str, problem: ImageProblem) -> ImageBackbone:
        """Return the network with its training at a tier, and what it goes on from."""
        start = (
            TrainedNetwork(self.network).backbone(tier, problem) if self.warm else None
        )
        return ImageBackbone(
            network=self.network,
            classes=10,
            loss=self.loss,
            loss_settings=LOSS_SETTINGS.get(self.loss, {}),
            pretraining=pretraining(tier, problem, self),
            revision=PRETRAINING_REVISION,
            start=start,
        )


class AnyNetwork(Protocol):
    """A network with its training, for any tier."""

    def backbone(self, tier: str, problem: ImageProblem) -> ImageBackbone:
        """Return the network with its training at a tier."""


@dataclass(frozen=True, kw_only=True)
class Images(DataProblem):
    """An image data set with a network that is trained on it.

    Attributes:
        data: the images.
        tier: decides pre-training.
        network: the network with its training.
        adapter: FiLM, its form and place.
        finetuning: mini-batches and images of fine-tuning; None for those of the tier.
        observed: images of the observe split that are used; None for all.
    """

    data: ImageProblem
    size: FinetuningSize | Any = SIZES["local"]
    tier: str = "local"
    network: AnyNetwork = TrainedNetwork("resnet32")
    adapter: FilmSettings = DIRECT
    finetuning: ImageSize | None = None
    observed: int | None = None

    def at(self, tier: str, **changes: Any) -> Self:
        """Return the problem at a tier with its network, and other fields changed."""
        usual = {"size": SIZES[tier], "network": TrainedNetwork(default_network(tier))}
        return replace(self, **{"tier": tier, **usual, **changes})

    def trained(self, loss: str, *, warm: bool = False) -> Self:
        """Return the problem with the same network, trained with another loss."""
        other = replace(self.network, loss=loss, warm=warm)  # type: ignore[type-var]
        return replace(self, network=other)

    @property
    def phi_size(self) -> int:  # type: ignore[override]
        """Number of parameters d of the adapter, without offsets."""
        network = self.network.backbone(self.tier, self.data).network
        return self.adapter.size or DIRECT_PHI.get(network, Problem.phi_size)

    @property
    def classes(self) -> int:  # type: ignore[override]
        """Number of classes of the data set."""
        return len(find_source(self.data.dataset).classes)

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it."""
        used = self.finetuning or SIZES[self.tier]
        settings = ImageSettings(
            self.data,
            self.network.backbone(self.tier, self.data),
            Finetuning(used.batch_size, used.examples),
            REVISION,
            replace(self.adapter, offsets=offsets or self.adapter.offsets),
            observed=self.observed,
        )
        return Unit("images", encode(settings))


def images(
    name: str, dataset: str, *, imbalance: int = 1, label_noise: float = 0.0
) -> Images:
    """Return a problem; see `ImageProblem` for imbalance and label noise."""
    data = ImageProblem(dataset, UNRESOLVED, imbalance, label_noise)
    return Images(name=name, data=data)


CIFAR10 = images("cifar10", "cifar10")
CIFAR100 = images("cifar100", "cifar100")
DIGITS = images("digits", "digits")


def cifar10(tier: str, **changes: Any) -> Images:
    """Return CIFAR-10 at a tier; digits stand for it at tier smoke."""
    return (DIGITS if tier == "smoke" else CIFAR10).at(tier, **changes)


def default_network(tier: str) -> str:
    """Return the network of a tier."""
    return "digit-net" if tier == "smoke" else "resnet32"


def network_label(tier: str) -> str:
    """Return what captions call the network of a tier."""
    return "small network on digits" if tier == "smoke" else "ResNet-32 on CIFAR-10"
