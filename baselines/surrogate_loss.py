"""Train the network with a surrogate loss: cross-entropy, Lovasz, or any registered.

Source: the rows CE and LO of Huang et al., CVPR 2021, Table 3. Differs: batch size,
rate and length are settings, for the paper does not give them.
"""

import copy
from dataclasses import dataclass, replace

import torch
from torch import nn

from baselines.losses import LOSSES, make_loss
from baselines.network_method import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
    Recipe,
    Schedule,
    fit,
    predict,
)
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric
from metricopt.sampling import Split


@NETWORK_METHODS.register("surrogate-loss")
@dataclass(frozen=True, kw_only=True)
class SurrogateLoss(NetworkMethod):
    """Train with a differentiable stand-in of the metric, which is never queried.

    Attributes:
        loss: name of a registered loss.
        pretrain_epochs: epochs of cross-entropy before; the Lovasz losses, whose
            gradients say little far from the optimum, often want some.
    """

    loss: str = "cross-entropy"
    pretrain_epochs: int = 0

    def __post_init__(self) -> None:
        if self.pretrain_epochs < 0:
            raise ConfigError(
                f"pretrain_epochs must be at least 0, got {self.pretrain_epochs}"
            )

    def train(
        self,
        network: nn.Module,
        train: Split,
        observe: Split,
        *,
        metric: Metric,
        schedule: Schedule,
        generator: torch.Generator,
    ) -> NetworkResult:
        """Train a copy of the network; see `NetworkMethod.train`."""
        network = copy.deepcopy(network)
        classes = predict(network, train.inputs[:2]).shape[1]
        loss = make_loss(self.loss, classes=classes)
        phases = [Recipe(loss, schedule, self.on_epoch)]
        if self.pretrain_epochs:
            before = replace(schedule, epochs=self.pretrain_epochs)
            phases.insert(0, Recipe(LOSSES.get("cross-entropy"), before, self.on_epoch))
        for recipe in phases:
            best = fit(network, train, observe, recipe=recipe, generator=generator)
        epochs = schedule.epochs + self.pretrain_epochs
        return NetworkResult(
            network,
            threshold=0.0,
            queries=0,
            gradient_steps=epochs * schedule.steps_per_epoch(len(train)),
            notes={"best_epoch": best.epoch, "observe_loss": best.score},
        )
