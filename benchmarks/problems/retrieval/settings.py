"""What decides a retrieval pipeline: problem, embedding network and fine-tuning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.training.optimization import Precision
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.pretrained.base_weights import BaseWeights
from metricopt.errors import ConfigError


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
        if self.side < 1 or not 0 < self.observed < 1:
            raise ConfigError(
                "a retrieval problem needs side >= 1 and observed in (0, 1), got "
                f"{self.side} and {self.observed}"
            )


@dataclass(frozen=True)
class EmbeddingTraining:
    """How an embedding network is trained, by Adam.

    Attributes:
        epochs: each draws about as many images as there are.
        batch_size: images of one mini-batch.
        per_class: images of every class in it.
        rate: greatest learning rate.
        head_factor: rate of the embedding layer relative to the others.
        hierarchical: whether the classes of a mini-batch are of two super-categories.
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
        least_area: of random crops, as a share of the image.
        frozen: names of the modules whose weights are not trained.
        principal: whether the embedding layer starts as principal components of the
            training images, half whitened, instead of at random.
    """

    epochs: int
    batch_size: int = 128
    per_class: int = 4
    rate: float = 1e-5
    head_factor: float = 10.0
    hierarchical: bool = False
    precision: Precision = "float32"
    least_area: float = 0.25
    frozen: tuple[str, ...] = ()
    principal: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.least_area <= 1:
            raise ConfigError(f"least_area must be in (0, 1], got {self.least_area}")
        if self.epochs < 1 or self.rate <= 0 or self.head_factor <= 0:
            raise ConfigError(
                "training needs epochs >= 1, rate > 0 and head_factor > 0, got "
                f"{self.epochs}, {self.rate} and {self.head_factor}"
            )


@dataclass(frozen=True)
class EmbeddingBackbone:
    """An embedding network and how it was trained.

    Attributes:
        network: name of an embedding network.
        size: of its embedding, E.
        base: weights it starts from.
        loss: name of the embedding loss it is trained with.
        training: how.
        revision: raised when code changes networks, so that no old one is reused.
        loss_settings: of that loss.
    """

    network: str
    size: int
    base: BaseWeights
    loss: str
    training: EmbeddingTraining
    revision: int
    loss_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class RetrievalSettings:
    """Everything that decides a retrieval pipeline, except its replicate.

    Attributes:
        problem: the photographs.
        backbone: the network.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: FiLM, its form and place.
        batch_size: images of one mini-batch of fine-tuning.
        per_class: images of every class in it.
    """

    problem: RetrievalProblem
    backbone: EmbeddingBackbone
    revision: int
    adapter: FilmSettings
    batch_size: int = 128
    per_class: int = 4
