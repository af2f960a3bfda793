"""Retrieval: theta is an embedding network, with FiLM on its last stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, make_embedding_loss
from baselines.training.batches import SampledBatches
from baselines.training.optimization import Precision
from benchmarks.data.files.decoded import pixels
from benchmarks.data.listed.contract import LISTED
from benchmarks.networks.contract import (
    EmbeddingNetwork,
    build_embedding_network,
)
from benchmarks.problems.choices import Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.pictured import changed_queries
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.pretrained.settings import PretrainedSettings, ThetaTraining
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import device, predicted
from benchmarks.problems.splits import Splits
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import DataError, require_ranges
from metricopt.losses.contract import Loss
from metricopt.losses.portfolio import Portfolio
from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import ClassSampler, HierarchicalSampler

FEWEST = 2
"""Classes that each part needs."""
SMALL = 1e-9
CHECKED = "recall@1"
"""Metric of a network on observe, as its record tells it."""


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
        precision: "bfloat16" where the machine is fast at it, as GPUs are.
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


def load_splits(problem: RetrievalProblem, replicate: int) -> Splits:
    """Return the splits of a retrieval problem for one replicate.

    The data set says which classes are the test, for all replicates. Of the training
    classes a random share is `observe`, another one in every replicate. Labels of train
    are 0 to C - 1.

    Raises:
        DataError: if a part would have fewer than two classes, a class of a part one
            image, or files are missing or wrong.
    """
    data = LISTED.get(problem.dataset)().load(offline=True)
    learnable = data.classes[: data.train_rows].unique()
    count = round(problem.observed * len(learnable))
    if min(count, len(learnable) - count) < FEWEST:
        raise DataError(
            f"{data.label} has {len(learnable)} training classes, of which a share of "
            f"{problem.observed} is observed: expected {FEWEST} or more in each part"
        )
    generator = make_generator("retrieval split", problem.dataset, replicate)
    order = learnable[torch.randperm(len(learnable), generator=generator)]
    places = torch.arange(len(data))
    is_train = places < data.train_rows
    observed = is_train & torch.isin(data.classes, order[:count])
    learned = is_train & ~observed
    own, labels = data.classes[learned].unique(return_inverse=True)

    source = pixels(data, problem.side)

    def part(chosen: Tensor, targets: Tensor) -> Photographs:
        return Photographs(source, places[chosen], targets)

    return Splits(
        part(learned, labels),
        part(observed, data.classes[observed]),
        part(~is_train, data.classes[~is_train]),
        data.label,
        data.digest,
        len(own),
        data.supers[learned],
    )


class RetrievalThetaSpec(ThetaSpec):
    """Photographs, the network with its base weights, and the replicate."""

    kind = "embedding-theta"
    load = staticmethod(load_splits)
    told: ClassVar[Mapping[str, str]] = {f"{CHECKED} on observe": "observe_recall"}
    problem: RetrievalProblem
    backbone: EmbeddingBackbone

    @property
    def classes(self) -> int:
        """Number of training classes, of which some are observed instead."""
        *_, learnable, _ = LISTED.get(self.problem.dataset).expected
        return learnable - round(self.problem.observed * learnable)

    def fresh(self) -> EmbeddingNetwork:
        """Return the network with random weights."""
        backbone = self.backbone
        return build_embedding_network(backbone.network, backbone.size, self.seed)

    def start(self, splits: Splits) -> EmbeddingNetwork:
        """Return the network with base weights, and an embedding layer to learn."""
        network = super().start(splits)
        if self.backbone.training.principal:
            start_at_components(network, splits.train)
        return network

    def loss(self) -> Loss:
        """Return the loss, with nothing learned yet."""
        backbone = self.backbone
        return make_embedding_loss(
            backbone.loss,
            classes=self.classes,
            size=backbone.size,
            **backbone.loss_settings,
        )

    def batches(self, splits: Splits, recipe: EmbeddingTraining) -> SampledBatches:
        """Return the augmented mini-batches of a training.

        Raises:
            ConfigError: if `per_class` does not divide the mini-batch.
            DataError: if there are too few classes.
        """
        targets, size, each = (
            splits.train.targets.cpu(),
            recipe.batch_size,
            recipe.per_class,
        )
        sampler = (
            HierarchicalSampler(targets, splits.groups, size, each)
            if recipe.hierarchical
            else ClassSampler(targets, size, each)
        )
        images = splits.train.with_crops(recipe.least_area).to(device())
        return SampledBatches(images, size, sampler=sampler, augment=True)

    def judge(self, network: nn.Module, observe: Photographs) -> dict[str, float]:
        """Return the recall of a network on observe."""
        metric = metric_of(Unit(CHECKED))
        embeddings = predicted(network, observe, self.at_once)
        return {"observe_recall": metric.value(embeddings, observe.targets)}


@torch.no_grad()
def start_at_components(network: EmbeddingNetwork, images: Photographs) -> None:
    """Let the embedding layer be the principal components of features, half whitened.

    Directions in which the images hardly differ are lost; the variance of the others is
    the root of what it was, so that no few of them decide.

    Args:
        network: ends with the layer and the normalisation; changed in place.
        images: whose features before the layer are analysed.
    """
    layer = network[-2]
    features = predicted(network[:-2], images, ThetaSpec.at_once).double()
    mean = features.mean(0)
    covariance = (features - mean).T @ (features - mean) / len(features)
    values, vectors = torch.linalg.eigh(covariance)
    kept = slice(len(values) - layer.out_features, None)
    scale = values[kept].clamp_min(SMALL).pow(-0.25)
    weight = scale[:, None] * vectors[:, kept].T
    layer.weight.copy_(weight)
    layer.bias.copy_(-weight @ mean)


@PIPELINES.register("retrieval")
class RetrievalPipeline(PretrainedPipeline):
    """A retrieval problem with its network; see `NetworkPipeline`.

    Every image of a part is a query among all others of that part.
    """

    settings_type = RetrievalSettings
    settings: RetrievalSettings
    spec_type = RetrievalThetaSpec

    @property
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""
        problem = self.settings.problem
        images, rows, *_ = LISTED.get(problem.dataset).expected
        return round((1 - problem.observed) * images), rows

    @property
    def own_losses(self) -> Portfolio:
        """All registered losses that learn nothing of their own."""
        classes, size = self.theta_spec.classes, self.settings.backbone.size
        found = {
            name: make_embedding_loss(name, classes=classes, size=size)
            for name in EMBEDDING_LOSSES
        }
        return {
            name: loss for name, loss in found.items() if not list(loss.parameters())
        }

    @property
    def sampler(self) -> ClassSampler:
        """What draws the mini-batches of fine-tuning."""
        targets = self.splits.train.targets
        assert isinstance(targets, Tensor)
        return ClassSampler(
            targets.cpu(), self.settings.batch_size, self.settings.per_class
        )

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with queries and their nearest images, before and after."""
        images = self.splits.test
        assert isinstance(images, Photographs)
        return dict(changed_queries(images, *self.before_and_after(choice)))
