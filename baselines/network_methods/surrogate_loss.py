"""Train the network with a surrogate loss: cross-entropy, Lovasz, or any registered.

Source: the rows CE and LO of Huang et al., CVPR 2021, Table 3. Differs: batch size,
rate and length are settings, because the paper does not give them.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from baselines.losses.contract import LOSSES, make_loss
from baselines.losses.cross_entropy import cross_entropy
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.prediction import predict
from metricopt.errors import ShapeError, require_ranges
from metricopt.losses.contract import Loss, properties


@NETWORK_METHODS.register("surrogate-loss")
@dataclass(frozen=True, kw_only=True)
class SurrogateLoss(NetworkMethod):
    """Train with a differentiable stand-in of the metric, which is never queried.

    Attributes:
        loss: name of a registered loss.
        loss_settings: of a loss that has some, by name.
        pretrain_epochs: epochs of cross-entropy before. The Lovasz losses often want
            some: far from the optimum their gradients say little.
    """

    loss: str = "cross-entropy"
    loss_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    pretrain_epochs: int = 0

    def __post_init__(self) -> None:
        require_ranges("surrogate-loss", vars(self), pretrain_epochs=">= 0")

    def _train(self, given: Assignment) -> NetworkResult:
        network, training = copy.deepcopy(given.network), given.training
        observe = given.validation.observe if training.keep_best else None
        loss = self._made_for(given)
        if self.pretrain_epochs:
            before = replace(training, epochs=self.pretrain_epochs)
            given.trained(network, cross_entropy, observe, before)
        run = given.trained(network, loss, observe)
        steps = self.pretrain_epochs * given.batches.steps_per_epoch + run.steps
        return given.result(network, steps, {**run.best.noted("observe_loss")})

    def _made_for(self, given: Assignment) -> Loss:
        network = copy.deepcopy(given.network)
        columns = predict(network, given.batches.plain(2)).shape[1]
        per_class = properties(LOSSES.get(self.loss)).outputs_per_class
        classes, left = divmod(columns, per_class)
        if left:
            raise ShapeError(
                f"loss {self.loss!r} needs {per_class} outputs per class, got {columns}"
            )
        return make_loss(self.loss, classes=classes, **self.loss_settings)
