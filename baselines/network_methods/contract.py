"""The contract of methods that train the whole network."""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.loop import OnEpoch
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.validation import Validation, labels
from metricopt.errors import DataError, ShapeError
from metricopt.reading.outputs import Outputs
from metricopt.registry import Registry


@dataclass(frozen=True)
class NetworkResult:
    """A trained network and what was spent on it.

    Attributes:
        network: the trained network, in evaluation mode.
        threshold: what is subtracted from the logits before they are judged.
        queries: metric queries made, as the validation counted them; each method says
            on how many examples.
        gradient_steps: steps taken on the network's weights.
        notes: further figures that a method reports, numbers or lists of them.
    """

    network: nn.Module
    threshold: float
    queries: int
    gradient_steps: int
    notes: dict[str, float | list[float]] = field(default_factory=dict)

    def predict(self, inputs: Tensor) -> Outputs:
        """Return the outputs to be judged: [N, C], or a tuple with the logits first."""
        outputs = predict(self.network, inputs)
        if isinstance(outputs, Tensor):
            return outputs - self.threshold
        logits, *others = outputs
        return (logits - self.threshold, *others)


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
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> NetworkResult:
        """Train a copy of the network, from the weights it has.

        Args:
            network: where to start, fresh or pre-trained; left as it is.
            batches: where mini-batches come from.
            validation: examples for the choice of the epoch, and all metric queries.
            training: length, optimiser and rate.
            generator: source of all randomness, dropout included; on the CPU.

        Returns:
            The trained copy and what was spent.

        Raises:
            ShapeError, DataError: if the method does not suit the problem.
            DivergedError: if a loss is not finite.
            BudgetExceededError: if the metric queries would exceed their limit.
        """

    def suits(self, outputs: Any, targets: Tensor) -> bool:
        """Return whether the method can work on such a problem.

        Args:
            outputs: of the network, for any examples.
            targets: labels of a whole split.
        """
        try:
            self.check_suits(outputs, targets)
        except (ShapeError, DataError):
            return False
        return True

    def check_suits(self, outputs: Any, targets: Tensor) -> None:
        """Check that the method can work on such a problem: by default on any logits.

        A method that takes networks with several outputs overrides it.

        Args:
            outputs: of the network, for any examples.
            targets: labels of a whole split.

        Raises:
            ShapeError, DataError: if it cannot; the message says what it needs.
        """
        if not isinstance(outputs, Tensor):
            raise ShapeError(
                "a network method needs outputs [N, C], got a tuple of "
                f"{len(outputs)} tensors"
            )
        if outputs.ndim != 2:
            raise ShapeError(
                f"a network method needs outputs [N, C], got {list(outputs.shape)}"
            )

    def check_problem(
        self, network: nn.Module, batches: Batches, validation: Validation
    ) -> None:
        """Check that the method suits a network and both of its splits.

        Raises:
            ShapeError, DataError: as `check_suits`.
        """
        network, observe = copy.deepcopy(network), validation.observe
        learned = predict(network, batches.plain(1))
        self.check_suits(learned, batches.targets)
        observed = predict(network, observe.batch(slice(1)))
        self.check_suits(observed, labels(observe))


def class_count(network: nn.Module, batches: Batches) -> int:
    """Return the number of classes C >= 2 that a network tells apart.

    One output is the logit of the second of two classes.

    Args:
        network: left as it is.
        batches: examples for it.
    """
    columns = predict(copy.deepcopy(network), batches.plain(2)).shape[-1]
    return max(2, int(columns))


NETWORK_METHODS: Registry[type[NetworkMethod]] = Registry(
    "network method", "baselines.network_methods"
)
