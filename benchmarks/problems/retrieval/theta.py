"""What determines theta of retrieval, and how it is trained."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import make_embedding_loss
from baselines.training.batches import SampledBatches
from benchmarks.data.listed.contract import LISTED
from benchmarks.networks.embedding.contract import (
    EmbeddingNetwork,
    build_embedding_network,
)
from benchmarks.problems.device import device
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import predicted
from benchmarks.problems.retrieval.settings import (
    EmbeddingBackbone,
    EmbeddingTraining,
    RetrievalProblem,
)
from benchmarks.problems.retrieval.splits import load_splits
from benchmarks.problems.splits import Splits
from benchmarks.runs.spec import Unit, metric_of
from metricopt.losses.contract import Loss
from metricopt.tasks.sampling import ClassSampler, HierarchicalSampler

SMALL = 1e-9
CHECKED = "recall@1"
"""Metric of a network on observe, as its record tells it."""


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
        return {
            "observe_recall": metric.value(embed(network, observe), observe.targets)
        }


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
    return predicted(network, images, RetrievalThetaSpec.at_once)
