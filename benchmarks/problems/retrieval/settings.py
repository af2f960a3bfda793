"""What decides a retrieval pipeline: photographs, network and adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.training.optimization import Precision
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from benchmarks.runs.codec import later
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
        per_class: images of every class in a mini-batch.
        head_factor: rate of the embedding layer relative to the others.
        hierarchical: whether the classes of a mini-batch are of two super-categories.
        precision: "bfloat16" for GPUs, "fastest" where machines differ.
        principal: whether the embedding layer starts as principal components of the
            training images, half whitened, instead of at random.

    Source: Cakir et al., CVPR 2019: Adam, rate 1e-5, ten times that for the embedding
    layer. Differs: one cycle of the rate.
    """

    rate: float = 1e-5
    per_class: int = 4
    head_factor: float = 10.0
    hierarchical: bool = False
    precision: Precision = "float32"
    least_area: float = 0.25
    frozen: tuple[str, ...] = ()
    principal: bool = False


@dataclass(frozen=True)
class EmbeddingBackbone:
    """An embedding network and how it was trained.

    The policy of another network is used without learning on.

    Attributes:
        network: name of an embedding network.
        size: number E of dimensions of its embedding.
        base: weights it starts from.
        loss: name of the embedding loss it is trained with; where a method trains it,
            name of the loss that fine-tuning follows.
        training: how it was trained.
        revision: raised when code changes networks, so that no old one is reused.
        loss_settings: settings of that loss.
        taught: the method that trains it; None for the loss alone.
        policy_of: the network in whose training the policy of the method was learned;
            None for a policy that learns here.
    """

    network: str
    size: int
    base: BaseWeights
    loss: str
    training: EmbeddingTraining
    revision: int
    loss_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    taught: TrainedByMethod | None = later(None)  # noqa: RUF009
    policy_of: "PolicySource | None" = later(None)  # noqa: RUF009


@dataclass(frozen=True)
class PolicySource:
    """A network in whose training a policy of ALA was learned.

    Attributes:
        problem: its photographs.
        backbone: the network, trained by a method with such a policy.
    """

    problem: RetrievalProblem
    backbone: EmbeddingBackbone


@dataclass(frozen=True)
class RetrievalSettings(PretrainedSettings):
    """Everything that decides a retrieval pipeline, except its replicate.

    Attributes:
        per_class: images of every class in a mini-batch of fine-tuning.
    """

    problem: RetrievalProblem
    backbone: EmbeddingBackbone
    per_class: int = 4
