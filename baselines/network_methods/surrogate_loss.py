"""Train the network with a surrogate loss: cross-entropy, Lovasz, or any registered.

Source: the rows CE and LO of Huang et al., CVPR 2021, Table 3. Differs: batch size,
rate and length are settings, because the paper does not give them.
"""

import copy
from dataclasses import dataclass, replace

import torch
from torch import nn

from baselines.losses.contract import LOSSES, make_loss
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import Batches
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.validation import Validation
from metricopt.errors import ConfigError, ShapeError
from metricopt.losses.contract import Loss, properties


@NETWORK_METHODS.register("surrogate-loss")
@dataclass(frozen=True, kw_only=True)
class SurrogateLoss(NetworkMethod):
    """Train with a differentiable stand-in of the metric, which is never queried.

    Attributes:
        loss: name of a registered loss.
        pretrain_epochs: epochs of cross-entropy before. The Lovasz losses often want
            some: far from the optimum their gradients say little.
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
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> NetworkResult:
        """Train a copy of the network; see `NetworkMethod.train`."""
        self.check_problem(network, batches, validation)
        network = copy.deepcopy(network)
        phases = [(self._made_for(network, batches), training)]
        if self.pretrain_epochs:
            before = replace(training, epochs=self.pretrain_epochs)
            phases.insert(0, (make_loss("cross-entropy", classes=1), before))
        for loss, settings in phases:
            run = TrainingRun(
                network,
                loss,
                batches,
                settings,
                generator=generator,
                observe=validation.observe if settings.keep_best else None,
            )
            best = train(run, hooks=Hooks(self.on_epoch))
        epochs = training.epochs + self.pretrain_epochs
        return NetworkResult(
            network,
            threshold=0.0,
            queries=validation.queries,
            gradient_steps=epochs * batches.steps_per_epoch,
            notes=dict(best.noted("observe_loss")),
        )

    def _made_for(self, network: nn.Module, batches: Batches) -> Loss:
        columns = predict(network, batches.plain(2)).shape[1]
        per_class = properties(LOSSES.get(self.loss)).outputs_per_class
        classes, left = divmod(columns, per_class)
        if left:
            raise ShapeError(
                f"loss {self.loss!r} needs {per_class} outputs per class, got {columns}"
            )
        return make_loss(self.loss, classes=classes)
