"""The contract of methods that train the whole network."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.checkpoint import Checkpoints
from baselines.training.loop import Hooks, OnEpoch, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.training.selection import (
    BestState,
    ObserveLoss,
    ObserveMetric,
    Score,
    balanced_once,
)
from baselines.validation import Validation, labels
from metricopt.errors import DataError, ShapeError
from metricopt.losses.contract import Loss
from metricopt.reading.outputs import Outputs
from metricopt.registry import Registry
from metricopt.tasks.examples import Examples

Notes = dict[str, float | list[float]]
"""Figures that a method reports, numbers or lists of them."""
DIGITS = 4
"""Significant digits of lists in notes."""


def significant(values: Iterable[float]) -> list[float]:
    """Return numbers with as many digits as notes have."""
    return [float(f"{value:.{DIGITS}g}") for value in values]


@dataclass(frozen=True)
class NetworkResult:
    """A trained network and what was spent on it.

    Attributes:
        network: the trained network, in evaluation mode.
        queries: metric queries made, as the validation counted them; each method says
            on how many examples.
        gradient_steps: steps taken on the network's weights.
        threshold: number subtracted from the logits before they are judged.
        notes: further figures that a method reports.
        learned: what it learned beside the network, for other trainings.
    """

    network: nn.Module
    queries: int
    gradient_steps: int
    threshold: float = 0.0
    notes: Notes = field(default_factory=dict)
    learned: Sequence[float] = ()

    def predict(self, inputs: Tensor) -> Outputs:
        """Return the outputs to be judged: [N, C], or a tuple with the logits first."""
        outputs = predict(self.network, inputs)
        if isinstance(outputs, Tensor):
            return outputs - self.threshold
        logits, *others = outputs
        return (logits - self.threshold, *others)


@dataclass(frozen=True)
class Assignment:
    """What one call of a network method is given; see `NetworkMethod.train`."""

    network: nn.Module
    batches: Batches
    validation: Validation
    training: Training
    generator: torch.Generator
    hooks: Hooks
    checkpoints: Checkpoints | None = None

    def run(
        self,
        network: nn.Module,
        loss: Loss,
        observe: Examples | Score | None,
        training: Training | None = None,
    ) -> TrainingRun:
        """Return a run that trains a network in place; see `TrainingRun`.

        Args:
            network: a copy of the given one, or one like it.
            loss: maps outputs and labels to a scalar.
            observe: how an epoch is scored.
            training: length and rate, if they are not the given ones.
        """
        return TrainingRun(
            network,
            loss,
            self.batches,
            training or self.training,
            generator=self.generator,
            observe=observe,
        )

    def trained(
        self,
        network: nn.Module,
        loss: Loss,
        observe: Examples | Score | None,
        training: Training | None = None,
    ) -> TrainingRun:
        """Return a finished run, with nothing done between its steps; see `run`."""
        run = self.run(network, loss, observe, training)
        self.finish(run)
        return run

    def finish(
        self, run: TrainingRun, hooks: Hooks | None = None, decided_by: str = ""
    ) -> BestState:
        """Train to the end, from where an earlier call was cut off; see `train`.

        Args:
            run: what is trained.
            hooks: what is done between the steps; None for nothing.
            decided_by: see `Checkpoints.next`.
        """
        checkpoint = self.checkpoints and self.checkpoints.next(decided_by)
        return train(run, hooks=hooks or self.hooks, checkpoint=checkpoint)

    def metric_score(self) -> ObserveMetric | None:
        """Return the metric's cost as the score of an epoch, if the best is kept."""
        return ObserveMetric(self.validation) if self.training.keep_best else None

    def loss_score(self, loss: Loss) -> ObserveLoss | None:
        """Return the loss on observe as the score of an epoch, if the best is kept.

        Examples are resampled once to equal classes where mini-batches are balanced.
        """
        observe = self.validation.observe
        if self.batches.balanced:
            observe = balanced_once(observe, self.generator)
        return ObserveLoss(loss, observe) if self.training.keep_best else None

    def class_count(self) -> int:
        """Return the number of classes C >= 2 that the network tells apart.

        One output is the logit of the second of two classes.
        """
        inputs = self.batches.plain(2)
        return max(2, int(predict(copy.deepcopy(self.network), inputs).shape[-1]))

    def result(self, network: nn.Module, steps: int, notes: Notes) -> NetworkResult:
        """Return a trained network, with the queries made so far."""
        return NetworkResult(network, self.validation.queries, steps, notes=notes)


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(ABC):
    """A way to train a whole network towards a metric.

    Attributes:
        on_epoch: called after every epoch, for progress; None to be silent.
    """

    on_epoch: OnEpoch | None = None

    def train(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
        checkpoints: Checkpoints | None = None,
    ) -> NetworkResult:
        """Train a copy of the network, from the weights it has.

        Args:
            network: where to start, fresh or pre-trained; left as it is.
            batches: where mini-batches come from.
            validation: examples for the choice of the epoch, and all metric queries.
            training: length, optimiser and rate.
            generator: source of all randomness, dropout included; on the CPU.
            checkpoints: where its trainings keep their states; None to keep none.

        Returns:
            The trained copy and what was spent.

        Raises:
            ShapeError, DataError: if the method does not suit the problem.
            DivergedError: if a loss is not finite.
            BudgetExceededError: if the metric queries would exceed their limit.
        """
        self.check_problem(network, batches, validation)
        hooks = Hooks(self.on_epoch)
        given = (network, batches, validation, training, generator, hooks, checkpoints)
        return self._train(Assignment(*given))

    @abstractmethod
    def _train(self, given: Assignment) -> NetworkResult:
        """Train a copy of the given network, which the method suits."""

    def suits(self, outputs: Any, targets: Tensor) -> bool:
        """Return whether the method can work on such a problem.

        Args:
            outputs: outputs of the network, for any examples.
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
            outputs: outputs of the network, for any examples.
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


NETWORK_METHODS: Registry[type[NetworkMethod]] = Registry(
    "network method", "baselines.network_methods"
)
