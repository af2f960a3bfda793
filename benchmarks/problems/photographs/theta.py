"""What determines theta of photographs, and how it is trained."""

from typing import Any

from torch import nn

from benchmarks.networks.contract import build_network
from benchmarks.problems.photographs.settings import (
    ClassifierBackbone,
    ClassifierTraining,
    PhotographProblem,
)
from benchmarks.problems.photographs.splits import load_splits
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.theta import ThetaSpec
from metricopt.losses.contract import Loss


class PhotographThetaSpec(ThetaSpec):
    """Photographs, the network and the replicate."""

    kind = "classifier-theta"
    load = staticmethod(load_splits)
    problem: PhotographProblem
    backbone: ClassifierBackbone

    @property
    def trained_with(self) -> str:
        """The optimiser."""
        return self.backbone.training.optimizer

    def fresh(self) -> nn.Sequential:
        """Return the network with random weights."""

        def head(features: int) -> nn.Module:
            return nn.Linear(features, self.classes)

        return build_network(self.backbone.network, head, self.seed)

    def loss(self) -> Loss:
        """Return cross-entropy."""
        return nn.CrossEntropyLoss()

    def augmented(self, train: Photographs, recipe: ClassifierTraining) -> Photographs:
        """Return random crops of the training images."""
        return train.with_crops(recipe.least_area)

    def sites(self, network: Any) -> tuple[str]:
        """Return the pooling of the last feature map.

        The mean of a map that is scaled and shifted is its mean, scaled and shifted. So
        FiLM after the pooling is FiLM on the map, at a fraction of the cost.
        """
        return (str(len(network) - 3),)
