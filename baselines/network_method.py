"""The contract of methods that train the whole network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from baselines.fitting import Epoch, OnEpoch, Recipe, Schedule, fit, predict
from metricopt.errors import DataError, ShapeError
from metricopt.metrics.base import Metric
from metricopt.registry import Registry
from metricopt.sampling import Split

__all__ = [
    "NETWORK_METHODS",
    "Epoch",
    "NetworkMethod",
    "NetworkResult",
    "OnEpoch",
    "Recipe",
    "Schedule",
    "check_binary",
    "fit",
    "predict",
]


@dataclass(frozen=True)
class NetworkResult:
    """A trained network and what was spent on it.

    Attributes:
        network: the trained network, in evaluation mode.
        threshold: what is subtracted from the logits before they are judged.
        queries: metric evaluations made; each method says on how many examples.
        gradient_steps: steps taken on the network's weights.
        notes: further figures a method reports.
    """

    network: nn.Module
    threshold: float
    queries: int
    gradient_steps: int
    notes: dict[str, float] = field(default_factory=dict)

    def predict(self, inputs: Tensor) -> Tensor:
        """Return the outputs to be judged, shape [N, C]."""
        return predict(self.network, inputs) - self.threshold


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(ABC):
    """A way to train a whole network towards a metric.

    Attributes:
        on_epoch: called after every epoch, for progress; None to be silent.
    """

    on_epoch: OnEpoch | None = None

    @abstractmethod
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
        """Train a copy of the network, from the weights it has.

        Args:
            network: where to start, fresh or pre-trained; left as it is.
            train: examples for gradients.
            observe: examples for metric queries and selection.
            metric: what the result will be judged by.
            schedule: length, mini-batches and rate.
            generator: source of all randomness, dropout included; on the CPU.

        Returns:
            The trained copy and what was spent.

        Raises:
            DivergedError: if a loss is not finite.
        """


NETWORK_METHODS: Registry[type[NetworkMethod]] = Registry("network method")
"""Filled by `import_units(baselines)`."""


def check_binary(outputs: Tensor, targets: Tensor, *, user: str) -> None:
    """Check for one logit per example and labels of both classes.

    Raises:
        ShapeError: if outputs are not [N, 1].
        DataError: if the labels are not 0 and 1, both present.
    """
    if outputs.ndim != 2 or outputs.shape[1] != 1:
        raise ShapeError(
            f"{user} needs one logit, outputs [N, 1], got {list(outputs.shape)}"
        )
    classes = targets.unique().tolist()
    if classes != [0, 1]:
        raise DataError(f"{user} needs targets of both classes 0 and 1, got {classes}")
