"""What determines an embedding network, and how it is trained."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from baselines.embedding_losses.contract import make_embedding_loss
from baselines.training.batches import SampledBatches
from benchmarks.data.files.decoded import pixels
from benchmarks.data.listed.contract import LISTED
from benchmarks.networks.contract import (
    EmbeddingNetwork,
    build_embedding_network,
)
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import device, predicted
from benchmarks.problems.retrieval.pair_metrics import LISTED_PAIRS
from benchmarks.problems.retrieval.pairs import FOLDS, drawn_pairs
from benchmarks.problems.retrieval.settings import (
    EmbeddingBackbone,
    EmbeddingTraining,
    RetrievalProblem,
)
from benchmarks.problems.splits import Splits
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import DataError
from metricopt.losses.contract import Loss
from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import ClassSampler, HierarchicalSampler

FEWEST = 2
"""Classes that each part needs."""
SMALL = 1e-9
CHECKED, VERIFIED = Unit("recall@1"), Unit(LISTED_PAIRS, {"folds": FOLDS})
"""Metric of a network on observe, as its record tells it: of images, and of pairs."""
RECALL, VERIFICATION = "observe_recall", "observe_verification"


def load_splits(problem: RetrievalProblem, replicate: int) -> Splits:
    """Return the splits of a retrieval problem for one replicate.

    The data set says which classes are the test, for all replicates, or which pairs:
    observe and test are pairs then, whose two follow each other. Of the training
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
    tested, seen = places[~is_train], places[observed]
    if data.pairs is not None:
        tested = data.pairs.flatten()
        seen = seen[drawn_pairs(data.classes[seen], generator).flatten()]

    def part(chosen: Tensor, targets: Tensor) -> Photographs:
        return Photographs(source, chosen, targets)

    return Splits(
        part(places[learned], labels),
        part(seen, data.classes[seen]),
        part(tested, data.classes[tested]),
        data.label,
        data.digest,
        len(own),
        data.supers[learned],
    )


class RetrievalThetaSpec(ThetaSpec):
    """Photographs, the network with its base weights, and the replicate."""

    kind = "embedding-theta"
    load = staticmethod(load_splits)
    problem: RetrievalProblem
    backbone: EmbeddingBackbone

    @property
    def paired(self) -> bool:
        """Whether observe and test are pairs."""
        return LISTED.get(self.problem.dataset).paired

    @property
    def told(self) -> Mapping[str, str]:
        """Facts that a table of released networks shows, by heading."""
        if self.paired:
            return {"verification on observe": VERIFICATION}
        return {"recall@1 on observe": RECALL}

    @property
    def teacher(self) -> "RetrievalThetaSpec | None":
        """The network whose policy is used; None if the policy learns here."""
        source = self.backbone.policy_of
        if source is None:
            return None
        return replace(self, problem=source.problem, backbone=source.backbone)

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
        """Return the recall of a network on observe, or its verification accuracy."""
        metric, name = (VERIFIED, VERIFICATION) if self.paired else (CHECKED, RECALL)
        embeddings = predicted(network, observe, self.at_once)
        return {name: metric_of(metric).value(embeddings, observe.targets)}


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
