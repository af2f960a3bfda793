"""The detection protocol of Table 6: detectors, problems and sizes of every tier.

A detector pre-trained with cross-entropy or the AP loss, FiLM of d = 128 parameters on
its box head, and T steps of fine-tuning with K = 5 % of T queries.
"""

from dataclasses import dataclass
from typing import Literal, Self

from benchmarks.data.detection.contract import DETECTION
from benchmarks.problems.detection.pipeline import (
    ClassLoss,
    DetectionProblem,
    DetectionSettings,
    DetectorBackbone,
    DetectorTraining,
)
from benchmarks.problems.pretrained.base_weights import SQUEEZENET, BaseWeights
from benchmarks.problems.pretrained.settings import FilmSettings
from benchmarks.problems.problem import PAPER, SMOKE, DataProblem, FinetuningSize
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Unit

REVISION = 1
"""Raised when code changes numbers, so that no old record is taken for a new one."""
PRETRAINING_REVISION = 1
"""Raised when code changes pre-trained detectors, so that no old one is taken."""

BackEnd = Literal["torchvision", "detectron2"]
LOSSES: dict[ClassLoss, str] = {"cross-entropy": "cross-entropy", "ap": "AP loss"}
"""Losses of the classes in Table 6, by name."""
FILM = FilmSettings("generator", size=128)

SIZES = {
    "paper": FinetuningSize(
        **PAPER, replicates=10, value_functions=1, seeds=3, batch_size=32
    ),
    "local": FinetuningSize(
        replicates=5,
        value_functions=1,
        seeds=1,
        search_tests=1,
        meta_tests=3,
        steps=50,
        observations=3,
        tasks=120,
        batch_size=16,
    ),
    "smoke": FinetuningSize(**SMOKE, value_functions=1, tasks=6, batch_size=8),
}
PROBLEMS = {
    "paper": {
        "07": DetectionProblem("voc07", observed=0.1),
        "07+12": DetectionProblem("voc07+12", observed=0.1),
    },
    "local": {"bccd": DetectionProblem("bccd-voc-subset", observed=0.2)},
    "smoke": {"drawn": DetectionProblem("drawn-cells", observed=0.4)},
}
"""Problems of the tiers, by the names of their columns."""
PROPOSALS = {"smoke": 24}
"""Regions of an image where they are not 100; drawn cells are four at most."""
DATA = {
    "paper": "on PASCAL VOC",
    "local": (
        "on bccd-voc-subset: 292 images of blood cells of 256 x 192 pixels, laid out "
        "as PASCAL VOC is. The network starts from weights for ImageNet and is trained "
        "on 164 images; 41 are observed, 87 are the test. No number here is one of "
        "PASCAL VOC"
    ),
    "smoke": "on drawn cells",
}
IMAGENET = BaseWeights("torchvision")
C4 = "Faster R-CNN R50-C4"
NETWORKS: dict[tuple[BackEnd, str], tuple[str, str, BaseWeights, DetectorTraining]] = {
    ("torchvision", "paper"): (
        "Faster R-CNN with ResNet-50 and a feature pyramid; the paper's network is "
        "R50-C4 of detectron2, which `table6-detectron2` runs",
        "resnet50-fpn",
        IMAGENET,
        DetectorTraining(
            12,
            batch_size=16,
            rate=1e-4,
            precision="bfloat16",
            frozen=("conv1", "bn1", "layer1"),
        ),
    ),
    # Chosen by AP50 on observe, one replicate.
    ("torchvision", "local"): (
        "Faster R-CNN on SqueezeNet 1.1 up to stride 8",
        "squeezenet1_1",
        SQUEEZENET,
        DetectorTraining(15, upside_down=True, frozen=("features.0",)),
    ),
    ("torchvision", "smoke"): (
        *("a tiny Faster R-CNN", "tiny"),
        *(BaseWeights(), DetectorTraining(10, rate=1e-2)),
    ),
    # The detector of the paper keeps its first two stages frozen itself.
    ("detectron2", "paper"): (
        *(C4, "r50-c4", IMAGENET),
        DetectorTraining(17, batch_size=16, rate=1e-4, precision="bfloat16"),
    ),
    ("detectron2", "local"): (
        *(C4, "r50-c4", IMAGENET),
        DetectorTraining(15, rate=1e-4, upside_down=True),
    ),
    ("detectron2", "smoke"): (
        *(f"{C4} with an eighth of the channels", "r50-c4-narrow"),
        *(BaseWeights(), DetectorTraining(10, rate=3e-3)),
    ),
}
"""What captions call a detector, its name, what it starts from and is trained by."""


def caption(back_end: BackEnd, tier: str) -> str:
    """Return what numbers of a tier are labelled with: back end, network and data."""
    return f"Back end {back_end}, {NETWORKS[back_end, tier][0]}, {DATA[tier]}"


@dataclass(frozen=True, kw_only=True)
class Detection(DataProblem):
    """Images of objects with a detector that is trained on them.

    Attributes:
        data: the images.
        network: the detector with its training.
        proposals: regions of an image that reach the box head.
    """

    data: DetectionProblem
    network: DetectorBackbone
    size: FinetuningSize = SIZES["local"]
    proposals: int = 100
    has_offsets = False
    is_pictured = True

    @classmethod
    def at(
        cls, tier: str, data: DetectionProblem, back_end: BackEnd, loss: ClassLoss
    ) -> Self:
        """Return some images at a tier with the detector that a loss trains."""
        _, network, base, training = NETWORKS[back_end, tier]
        return cls(
            name=data.dataset,
            data=data,
            network=DetectorBackbone(
                network, base, loss, training, PRETRAINING_REVISION
            ),
            size=SIZES[tier],
            proposals=PROPOSALS.get(tier, 100),
        )

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it; average precision knows no offsets."""
        settings = DetectionSettings(
            self.data,
            self.network,
            REVISION,
            FILM,
            self.size.batch_size,
            self.proposals,
        )
        return Unit("detection", encode(settings))


def classes_of(tier: str) -> tuple[str, ...]:
    """Return the names of the classes of a tier."""
    first = next(iter(PROBLEMS[tier].values()))
    return DETECTION.get(first.dataset).classes
