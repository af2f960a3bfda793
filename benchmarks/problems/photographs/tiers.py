"""The protocol of Table 4: networks, photographs and sizes of every tier.

A network pre-trained with cross-entropy, FiLM of d = 256 parameters on its last feature
map, and T steps of fine-tuning with K = 5 % of T queries.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from benchmarks.data.read_source import FULL
from benchmarks.problems.images.method_networks import MCR, MethodImages
from benchmarks.problems.images.tiers import cifar10
from benchmarks.problems.photographs.pipeline import (
    ClassifierBackbone,
    ClassifierTraining,
    PhotographProblem,
    PhotographSettings,
    PolicySource,
)
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.settings import FilmSettings
from benchmarks.problems.problem import SMOKE, DataProblem, FinetuningSize
from benchmarks.runs.codec import changed, encode
from benchmarks.runs.spec import Settings, Unit

REVISION = 2
"""Raised when code changes numbers, so that no old record is taken for a new one."""
PRETRAINING_REVISION = 1
"""Raised when code changes pre-trained networks, so that no old one is taken."""


@dataclass(frozen=True)
class PhotographSize(FinetuningSize):
    """How large a tier is.

    Attributes:
        examples: training images used in fine-tuning; None for all.
    """

    replicates: int = 3
    value_functions: int = 1
    examples: int | None = None


SIZES = {
    "paper": PhotographSize(
        steps=500,
        observations=25,
        tasks=1_000,
        batch_size=256,
        replicates=10,
        examples=50_000,
    ),
    "local": PhotographSize(
        search_tests=1, meta_tests=5, seeds=3, tasks=240, batch_size=64
    ),
    "smoke": PhotographSize(**SMOKE, tasks=8, batch_size=16, replicates=1),
}


@dataclass(frozen=True, kw_only=True)
class ImageNet(DataProblem):
    """Photographs of classes with a network that is trained on them.

    Networks share the generator of FiLM, so that a value function of phi can be
    transferred.

    Attributes:
        data: the photographs.
        network: the network with its training.
        examples: training images that fine-tuning uses; None for all.
    """

    data: PhotographProblem
    network: ClassifierBackbone
    size: FinetuningSize = SIZES["local"]
    examples: int | None = None
    phi_size: int = 256  # type: ignore[misc]

    @property
    def classes(self) -> int:  # type: ignore[override]
        """Number of classes of the photographs."""
        return self.network.classes

    def trained(self, changes: Settings) -> Self:
        """Return the problem with a network whose training is changed."""
        network = changed(self.network, {"training": changes})
        return replace(self, network=network)

    def by_ala(self, tier: str, *, transferred: bool) -> Self:
        """Return the problem with a network that ALA trains, by its usual optimiser.

        Args:
            tier: decides the settings of ALA, and the source of a policy.
            transferred: whether the policy is that of CIFAR-10, which stays as it is.
        """
        label, source = (TRANSFERRED, _policy(tier)) if transferred else (ALA, None)
        taught = TrainedByMethod(label, Unit(ALA, BY_ALA[tier]), Unit(MCR))
        network = replace(self.network, taught=taught, policy_of=source)
        return replace(self, network=network)

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it."""
        settings = PhotographSettings(
            self.data,
            self.network,
            REVISION,
            FilmSettings("shared", size=self.phi_size, offsets=offsets),
            self.size.batch_size,
            self.examples,
        )
        return Unit("imagenet", encode(settings))


def _policy(tier: str) -> PolicySource:
    """Return the network on CIFAR-10, digits at tier smoke, that ALA trains first."""
    images = MethodImages.of(cifar10(tier), tier, whole=True).by("ala")
    data = replace(images.data, variant=FULL)
    return PolicySource(data, images.network.backbone(tier, data))


def _photographs(
    data: PhotographProblem,
    network: str,
    classes: int,
    training: ClassifierTraining,
    examples: int | None = None,
) -> ImageNet:
    classifier = ClassifierBackbone(network, classes, training, PRETRAINING_REVISION)
    return ImageNet(name=data.dataset, data=data, network=classifier, examples=examples)


IMAGENET = PhotographProblem("imagenet", side=224, observed=50_000)
IMAGENETTE = PhotographProblem("imagenette-subset", side=96, observed=200)
DRAWN = PhotographProblem("drawn-folders", side=32, observed=120)
CIFAR10 = PhotographProblem("cifar10", side=32, observed=5_000, variant=FULL)

OWN, SMALLER, ELSEWHERE = "nasnet-a", "resnet18", "cifar10"
"""The network of Table 4, a smaller one for the same data, and NASNet-A of CIFAR-10."""

_LARGE = ClassifierTraining(
    250,
    rate=0.04,
    batch_size=256,
    optimizer="rmsprop",
    weight_decay=4e-5,
    schedule="cosine",
    least_area=0.08,
    precision="bfloat16",
)
_TINY = ClassifierTraining(2, rate=0.03, batch_size=16, least_area=0.6)
NETWORKS = {
    "paper": {
        OWN: _photographs(IMAGENET, "nasnet-a-mobile", 1_000, _LARGE, 50_000),
        SMALLER: _photographs(
            IMAGENET,
            "resnet18",
            1_000,
            replace(_LARGE, epochs=90, optimizer="sgd", rate=0.1, weight_decay=1e-4),
            50_000,
        ),
        ELSEWHERE: _photographs(
            CIFAR10,
            "nasnet-a-cifar",
            10,
            # Zoph et al., CVPR 2018, Appendix A.2.
            ClassifierTraining(
                600, 0.025, schedule="cosine", least_area=0.6, precision="bfloat16"
            ),
        ),
    },
    "local": {
        OWN: _photographs(
            IMAGENETTE,
            "nasnet-a-small",
            10,
            ClassifierTraining(60, 0.1, batch_size=32, optimizer="rmsprop"),
        ),
        SMALLER: _photographs(
            IMAGENETTE, "resnet18-slim", 10, ClassifierTraining(60, 0.1, batch_size=32)
        ),
        ELSEWHERE: _photographs(
            CIFAR10,
            "nasnet-a-cifar-small",
            10,
            ClassifierTraining(12, 0.1, least_area=0.6),
            10_000,
        ),
    },
    "smoke": {
        OWN: _photographs(
            DRAWN, "nasnet-a-tiny", 6, replace(_TINY, optimizer="rmsprop")
        ),
        SMALLER: _photographs(DRAWN, "resnet18-slim", 6, _TINY),
        ELSEWHERE: _photographs(DRAWN, "nasnet-a-tiny", 6, _TINY),
    },
}
"""Photographs and networks of the tiers, by the names of what is learned on them."""
POWERSIGN = {
    "paper": {"optimizer": "powersign", "rate": 0.1},
    "local": {"optimizer": "powersign", "rate": 0.1, "schedule": "cosine"},
    "smoke": {"optimizer": "powersign", "rate": 0.03, "schedule": "cosine"},
}
"""How the network of Table 4 is trained by PowerSign-cd."""
ALA, TRANSFERRED = "ala", "ala-cifar10"
BY_ALA: dict[str, Settings] = {
    "paper": {"period": 200, "measured": 4},
    # There are 1,500 steps, and so 75 decisions.
    "local": {"period": 20, "measured": 1},
    "smoke": {"period": 5, "measured": 1},
}
"""How the network of Table 4 is trained by ALA."""
SECOND = {"epochs": 1, "rate": 1e-4, "schedule": "constant"}
"""How theta is trained between the two runs of MetricOpt."""
CAPTIONS = {
    "paper": "NASNet-A mobile (4 @ 1056) on ImageNet",
    "local": (
        "NASNet-A (1 @ 384) on imagenette-subset: ten classes of ImageNet with 125 "
        "photographs each, squashed to 96 x 96 pixels; 800 are trained on, 200 "
        "observed, 250 are the test. All networks begin at random: those that were "
        "trained on ImageNet have seen these images. No number here is one of ImageNet"
    ),
    "smoke": "a tiny NASNet-A on drawn shapes",
}


def problem_at(tier: str, name: str, **changes: Any) -> ImageNet:
    """Return the photographs with one of the networks of a tier, by its name.

    Args:
        tier: decides the sizes.
        name: key of `NETWORKS`.
        **changes: other fields of the problem.
    """
    return replace(NETWORKS[tier][name], **{"size": SIZES[tier], **changes})
