"""The retrieval protocol of Table 5: networks, problems and sizes of every tier.

An embedding network pre-trained with FastAP or the recall loss, FiLM of d = 128
parameters on its last stage, and T steps of fine-tuning with K = 5 % of T queries.
"""

from dataclasses import dataclass
from typing import Self

from benchmarks.problems.pretrained.base_weights import SQUEEZENET, BaseWeights
from benchmarks.problems.pretrained.settings import FilmSettings
from benchmarks.problems.problem import PAPER, SMOKE, DataProblem, FinetuningSize
from benchmarks.problems.retrieval.settings import (
    EmbeddingBackbone,
    EmbeddingTraining,
    RetrievalProblem,
    RetrievalSettings,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Unit

REVISION = 1
"""Raised when code changes numbers, so that no old record is taken for a new one."""
PRETRAINING_REVISION = 1
"""Raised when code changes pre-trained networks, so that no old one is taken."""

LOSSES = {"fastap": "FastAP", "recall": "recall loss"}
"""Base losses of Table 5, by name."""
FILM = FilmSettings("generator", size=128)


@dataclass(frozen=True)
class RetrievalSize(FinetuningSize):
    """How large a tier is.

    Attributes:
        per_class: images of every class in a mini-batch of fine-tuning.
        ranks: k of the columns Recall@k: less than the images of the test.
    """

    replicates: int = 3
    value_functions: int = 1
    seeds: int = 3
    per_class: int = 4
    ranks: tuple[int, ...] = (1, 10, 100, 1_000)


SIZES = {
    "paper": RetrievalSize(**PAPER, replicates=10),
    "local": RetrievalSize(
        search_tests=1,
        seeds=1,
        steps=50,
        observations=3,
        tasks=120,
        batch_size=64,
        per_class=8,
        ranks=(1, 10, 100),
    ),
    "smoke": RetrievalSize(
        **SMOKE, tasks=8, batch_size=16, replicates=2, ranks=(1, 10)
    ),
}

PROBLEMS = {
    # The classes to observe are taken from the training classes: a tenth of SOP's,
    # 1,132 with about 6,000 images; of few classes a larger share.
    "paper": RetrievalProblem("sop", side=224, observed=0.1),
    "local": RetrievalProblem("cars196-sop-format", side=192, observed=0.2),
    "smoke": RetrievalProblem("drawn-shapes", side=32, observed=0.4),
}
LABELS = {
    "paper": "ResNet-50 on Stanford Online Products",
    "local": (
        "SqueezeNet 1.1 on cars196-sop-format: 160 classes of cars with 10 photographs "
        "each, laid out as Stanford Online Products is, 96 pixels wide at most, "
        "stretched to 192 x 192. The network starts from weights for ImageNet and is "
        "trained on 78 of the classes; 20 are observed, 62 are the test. No number "
        "here is one of Stanford Online Products, or of Cars196"
    ),
    "smoke": "a tiny network on drawn shapes",
}


def backbone(tier: str, loss: str) -> EmbeddingBackbone:
    """Return the network of a tier, trained with a loss."""
    if tier == "paper":
        network, size, base = "resnet50", 512, BaseWeights("torchvision")
        hierarchical = loss == "fastap"
        training = EmbeddingTraining(
            epochs=30, hierarchical=hierarchical, precision="bfloat16"
        )
    elif tier == "local":
        network, size, base = "squeezenet1_1", 128, SQUEEZENET
        # Chosen by recall and mAP@R on observe, one replicate.
        training = EmbeddingTraining(
            20,
            batch_size=64,
            rate=3e-4,
            head_factor=3.0,
            least_area=0.5,
            frozen=("features.0", "features.3", "features.4"),
            principal=True,
        )
    else:
        network, size, base = "tiny", 16, BaseWeights()
        training = EmbeddingTraining(4, batch_size=16, rate=3e-3, head_factor=1.0)
    return EmbeddingBackbone(network, size, base, loss, training, PRETRAINING_REVISION)


@dataclass(frozen=True, kw_only=True)
class Retrieval(DataProblem):
    """Photographs that are compared, with an embedding network trained on them.

    Attributes:
        data: the photographs.
        network: the network with its training.
    """

    data: RetrievalProblem
    network: EmbeddingBackbone
    size: RetrievalSize = SIZES["local"]
    has_offsets = False
    is_pictured = True

    @classmethod
    def at(cls, tier: str, loss: str) -> Self:
        """Return the problem of a tier with the network that a loss trains."""
        data = PROBLEMS[tier]
        network, size = backbone(tier, loss), SIZES[tier]
        return cls(name=data.dataset, data=data, network=network, size=size)

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it; an embedding has no offsets."""
        size = self.size
        settings = RetrievalSettings(
            self.data, self.network, REVISION, FILM, size.batch_size, size.per_class
        )
        return Unit("retrieval", encode(settings))
