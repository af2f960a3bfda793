"""The protocol of Table 4: networks, photographs and sizes of every tier.

A network pre-trained with cross-entropy, FiLM of d = 256 parameters on its last feature
map, and T steps of fine-tuning with K = 5 % of T queries.
"""

from dataclasses import dataclass, replace

from benchmarks.experiments.shared.arms import FinetuningSize
from benchmarks.experiments.shared.networks import network_name
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.photographs.settings import (
    Classifier,
    ClassifierTraining,
    ImagenetSettings,
    PhotographProblem,
)
from benchmarks.runs.codec import changed, decode, encode
from benchmarks.runs.spec import RunSpec, Settings, Unit

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
    "smoke": PhotographSize(
        meta_tests=2,
        search_tests=1,
        seeds=1,
        steps=10,
        observations=2,
        tasks=8,
        batch_size=16,
        replicates=1,
    ),
}


@dataclass(frozen=True)
class Photographed:
    """Photographs with a network that is trained on them, at a tier.

    Networks share the generator of FiLM, so that a value function of phi can be
    transferred.

    Attributes:
        problem: the photographs.
        backbone: the network.
        examples: training images that fine-tuning uses; None for all.
        size: number d of adapter parameters.
    """

    problem: PhotographProblem
    backbone: Classifier
    examples: int | None = None
    size: int = 256

    def trained(self, changes: Settings) -> "Photographed":
        """Return the same with a network whose training is changed."""
        backbone = changed(self.backbone, {"training": changes})
        return replace(self, backbone=backbone)

    def pipeline(
        self, tier: str, *, offsets: bool = False, batch_size: int | None = None
    ) -> Unit:
        """Return the pipeline at a tier.

        Args:
            tier: decides the mini-batches of fine-tuning.
            offsets: whether output offsets stand beside FiLM.
            batch_size: of fine-tuning; None for the tier's.
        """
        settings = ImagenetSettings(
            self.problem,
            self.backbone,
            REVISION,
            FilmSettings("shared", size=self.size, offsets=offsets),
            batch_size or SIZES[tier].batch_size,
            self.examples,
        )
        return Unit("imagenet", encode(settings))


def _photographed(
    problem: PhotographProblem,
    network: str,
    classes: int,
    training: ClassifierTraining,
    examples: int | None = None,
) -> Photographed:
    backbone = Classifier(network, classes, training, PRETRAINING_REVISION)
    return Photographed(problem, backbone, examples)


IMAGENET = PhotographProblem("imagenet", side=224, observed=50_000)
IMAGENETTE = PhotographProblem("imagenette-subset", side=96, observed=200)
DRAWN = PhotographProblem("drawn-folders", side=32, observed=120)
CIFAR10 = PhotographProblem("cifar10", side=32, observed=5_000, variant="full")

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
        OWN: _photographed(IMAGENET, "nasnet-a-mobile", 1_000, _LARGE, 50_000),
        SMALLER: _photographed(
            IMAGENET,
            "resnet18",
            1_000,
            replace(_LARGE, epochs=90, optimizer="sgd", rate=0.1, weight_decay=1e-4),
            50_000,
        ),
        ELSEWHERE: _photographed(
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
        OWN: _photographed(
            IMAGENETTE,
            "nasnet-a-small",
            10,
            ClassifierTraining(60, 0.1, batch_size=32, optimizer="rmsprop"),
        ),
        SMALLER: _photographed(
            IMAGENETTE,
            "resnet18-slim",
            10,
            ClassifierTraining(60, 0.1, batch_size=32),
        ),
        ELSEWHERE: _photographed(
            CIFAR10,
            "nasnet-a-cifar-small",
            10,
            ClassifierTraining(12, 0.1, least_area=0.6),
            10_000,
        ),
    },
    "smoke": {
        OWN: _photographed(
            DRAWN, "nasnet-a-tiny", 6, replace(_TINY, optimizer="rmsprop")
        ),
        SMALLER: _photographed(DRAWN, "resnet18-slim", 6, _TINY),
        ELSEWHERE: _photographed(DRAWN, "nasnet-a-tiny", 6, _TINY),
    },
}
"""Photographs and networks of the tiers, by the names of what is learned on them."""
POWERSIGN = {
    "paper": {"optimizer": "powersign", "rate": 0.1},
    "local": {"optimizer": "powersign", "rate": 0.1, "schedule": "cosine"},
    "smoke": {"optimizer": "powersign", "rate": 0.03, "schedule": "cosine"},
}
"""How the network of Table 4 is trained by PowerSign-cd."""
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


def network_of(spec: RunSpec) -> str:
    """Return a readable identity of the pre-trained network of a run."""
    settings = decode(ImagenetSettings, spec.pipeline.settings)
    backbone = settings.backbone
    return network_name(
        settings.problem,
        backbone,
        spec.replicate,
        trained_with=backbone.training.optimizer,
    )
