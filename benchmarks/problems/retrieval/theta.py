"""Pre-trained embedding networks: what determines one, and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import make_embedding_loss
from baselines.training.batches import SampledBatches
from baselines.training.loop import OnEpoch, TrainingRun
from baselines.training.optimization import Training
from benchmarks.networks.embedding.contract import (
    EmbeddingNetwork,
    build_embedding_network,
)
from benchmarks.problems.device import device
from benchmarks.problems.pretrained.base_weights import load_base
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.theta import (
    PretrainedSpec,
    find_artifact,
    freeze,
    give,
    parts,
    predicted,
    train_artifact,
)
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.problems.retrieval.problem import RetrievalSplits, load_problem
from benchmarks.problems.retrieval.settings import (
    EmbeddingBackbone,
    EmbeddingTraining,
    RetrievalProblem,
)
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.metrics import metric_of
from benchmarks.runs.paths import data_root
from benchmarks.runs.spec import Unit
from metricopt.losses.contract import Loss
from metricopt.tasks.class_sampling import ClassSampler, HierarchicalSampler
from metricopt.tasks.sampling import Sampler

PREDICTED_AT_ONCE = 128
SMALL = 1e-9
CHECKED = "recall@1"
"""Metric of a network on observe, as its record tells it."""


@dataclass(frozen=True)
class EmbeddingSpec(PretrainedSpec):
    """Everything that determines a pre-trained embedding network.

    Attributes:
        problem: the photographs.
        backbone: network, base weights, loss and training.
        replicate: decides splits and seeds.
    """

    kind = "embedding-theta"
    problem: RetrievalProblem
    backbone: EmbeddingBackbone
    replicate: int

    @property
    def name(self) -> str:
        """Readable, and unique among the networks that are released."""
        backbone = self.backbone
        named = (self.problem.dataset, backbone.network, backbone.loss)
        return "-".join([*named, f"r{self.replicate}"])

    @property
    def epochs(self) -> int:
        """Length of its training."""
        return self.backbone.training.epochs

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network; see `train_embedding`."""
        return train_embedding(self, on_epoch)

    def told(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """Return its recall on observe."""
        return {f"{CHECKED} on observe": f"{float(facts['observe_recall']):.4f}"}


@dataclass(frozen=True, eq=False)
class EmbeddingTheta:
    """A pre-trained embedding network with its loss.

    Attributes:
        network: in evaluation mode.
        loss: what it was trained with; what it learned is frozen.
        digest: of all weights, see `weights.weights_digest`.
    """

    network: EmbeddingNetwork
    loss: Loss
    digest: str


def find_theta(spec: EmbeddingSpec, classes: int) -> EmbeddingTheta:
    """Return a pre-trained network, trained now if there is none.

    Args:
        spec: which one.
        classes: number of its training classes.

    Raises:
        DataError: if released weights do not match their record, or base weights are
            missing or others.
    """
    tensors = find_artifact(spec).tensors
    network, loss = unloaded(spec), loss_of(spec.backbone, classes)
    give(network, tensors, spec)
    if isinstance(loss, nn.Module):
        loss.load_state_dict(parts(tensors)[1], strict=False)
        # In evaluation mode a loss remembers no mini-batch.
        loss.requires_grad_(False).eval().to(device())
    return EmbeddingTheta(network.eval().to(device()), loss, weights_digest(tensors))


def unloaded(spec: EmbeddingSpec) -> EmbeddingNetwork:
    """Return the network with random weights."""
    backbone = spec.backbone
    return build_embedding_network(backbone.network, backbone.size, spec.seed)


def fresh(spec: EmbeddingSpec) -> EmbeddingNetwork:
    """Return the network with the base weights, and a random embedding layer."""
    network = unloaded(spec)
    load_base(network, spec.backbone.base, data_root(), offline=True)
    return network


def fetch_base(backbone: EmbeddingBackbone) -> None:
    """Download the weights a network starts from, where torchvision offers them."""
    if backbone.base.source == "torchvision":
        network = build_embedding_network(backbone.network, backbone.size, 0)
        load_base(network, backbone.base, data_root())


def loss_of(backbone: EmbeddingBackbone, classes: int) -> Loss:
    """Return the loss of a network, with nothing learned yet."""
    settings = dict(backbone.loss_settings)
    return make_embedding_loss(
        backbone.loss, classes=classes, size=backbone.size, **settings
    )


def sampler_of(targets: Tensor, groups: Tensor, recipe: EmbeddingTraining) -> Sampler:
    """Return what draws the mini-batches of a training.

    Raises:
        ConfigError: if `per_class` does not divide the mini-batch.
        DataError: if there are too few classes.
    """
    size, each = recipe.batch_size, recipe.per_class
    if recipe.hierarchical:
        return HierarchicalSampler(targets, groups, size, each)
    return ClassSampler(targets, size, each)


def batches_of(splits: RetrievalSplits, recipe: EmbeddingTraining) -> SampledBatches:
    """Return the augmented mini-batches of a training."""
    sampler = sampler_of(splits.train.targets.cpu(), splits.groups, recipe)
    examples = splits.train.with_crops(recipe.least_area).to(device())
    return SampledBatches(examples, recipe.batch_size, sampler=sampler, augment=True)


def training_of(recipe: EmbeddingTraining) -> Training:
    """Return the settings of the training loop for an embedding network.

    Source: Cakir et al., CVPR 2019: Adam, rate 1e-5, ten times that for the embedding
    layer. Differs: one cycle of the rate.
    """
    return Training(
        epochs=recipe.epochs,
        learning_rate=recipe.rate,
        head_factor=recipe.head_factor,
        schedule="one-cycle",
        precision=recipe.precision,
        channels_last=True,
        keep_best=False,
    )


def train_embedding(spec: EmbeddingSpec, on_epoch: OnEpoch | None = None) -> Artifact:
    """Train a network, continuing from its checkpoint if there is one.

    Returns:
        Its weights (matrices in half precision), the loss's weights under `loss.`, and
        facts: losses by epoch, recall on observe, seconds, digest of the weights. For a
        network that diverged, only that fact, so that no run trains it again.
    """
    splits = load_problem(spec.problem, spec.replicate)
    recipe = spec.backbone.training
    network = fresh(spec)
    if recipe.principal:
        start_at_components(network, splits.train)
    freeze(network, recipe.frozen)
    run = TrainingRun(
        network,
        loss_of(spec.backbone, splits.classes),
        batches_of(splits, recipe),
        training_of(recipe),
        generator=spec.seeds.generator("pre-training"),
    )
    observe, metric = splits.observe.to(device()), metric_of(Unit(CHECKED))

    def judge(network: nn.Module) -> dict[str, float]:
        found = metric.value(embed(network, observe), observe.targets)
        return {"observe_recall": found}

    return train_artifact(spec, run, judge, on_epoch)


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
    features = embed(network[:-2], images).double()
    mean = features.mean(0)
    covariance = (features - mean).T @ (features - mean) / len(features)
    values, vectors = torch.linalg.eigh(covariance)
    kept = slice(len(values) - layer.out_features, None)
    scale = values[kept].clamp_min(SMALL).pow(-0.25)
    weight = scale[:, None] * vectors[:, kept].T
    layer.weight.copy_(weight)
    layer.bias.copy_(-weight @ mean)


def embed(network: nn.Module, images: Photographs) -> Tensor:
    """Return the float32 embeddings of all images, without augmentation, [N, E]."""
    return predicted(network, images, PREDICTED_AT_ONCE)
