"""What decides a retrieval pipeline: problem, embedding network and fine-tuning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.training.optimization import Precision
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from metricopt.errors import require_ranges


@dataclass(frozen=True)
class RetrievalProblem:
    """Photographs of classes, some to learn, some to observe, others to test.

    Attributes:
        dataset: name of a listed data set, which says which classes are the test.
        side: pixels of the square images.
        observed: share of the training classes that is kept for metric queries.
    """

    dataset: str
    side: int
    observed: float

    def __post_init__(self) -> None:
        settings = vars(self)
        require_ranges("a problem", settings, side=">= 1", observed="in (0, 1)")


@dataclass(frozen=True)
class EmbeddingTraining(ThetaTraining):
    """How theta is trained, by Adam with one cycle of the rate.

    Attributes:
        epochs: passes; each draws about as many images as there are.
        batch_size: images in one mini-batch.
        per_class: images of every class in it.
        rate: greatest learning rate.
        head_factor: rate of the embedding layer relative to the others.
        hierarchical: whether the classes of a mini-batch are of two super-categories.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
        least_area: least share of an image that a random crop holds.
        frozen: names of the modules whose weights are not trained.
        principal: whether the embedding layer starts as principal components of the
            training images, half whitened, instead of at random.

    Source: Cakir et al., CVPR 2019: Adam, rate 1e-5, ten times that for the embedding
    layer. Differs: one cycle of the rate.
    """

    batch_size: int = 128
    per_class: int = 4
    rate: float = 1e-5
    head_factor: float = 10.0
    hierarchical: bool = False
    precision: Precision = "float32"
    least_area: float = 0.25
    frozen: tuple[str, ...] = ()
    principal: bool = False


@dataclass(frozen=True)
class EmbeddingBackbone:
    """An embedding network and how it was trained.

    Attributes:
        network: name of an embedding network.
        size: number E of dimensions of its embedding.
        base: weights it starts from.
        loss: name of the embedding loss it is trained with.
        training: how it was trained.
        revision: raised when code changes networks, so that no old one is reused.
        loss_settings: settings of that loss.
    """

    network: str
    size: int
    base: BaseWeights
    loss: str
    training: EmbeddingTraining
    revision: int
    loss_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class RetrievalSettings(PretrainedSettings):
    """Everything that decides a retrieval pipeline, except its replicate.

    Attributes:
        per_class: images of every class in a mini-batch of fine-tuning.
    """

    problem: RetrievalProblem
    backbone: EmbeddingBackbone
    per_class: int = 4
