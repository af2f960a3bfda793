"""Which epoch of a training is kept."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from baselines.training.checkpoint import all_finite
from baselines.training.prediction import predict_examples
from baselines.validation import Validation, labels
from metricopt.errors import DivergedError
from metricopt.losses.contract import Loss
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import BalancedSampler, Split

Score = Callable[[nn.Module], float]
"""How good a network is after an epoch; lower is better."""


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch.

    Attributes:
        number: epochs done so far, from 1.
        epochs: epochs in all.
        train_loss: mean loss of the mini-batches of the epoch.
        observe_score: what the best epoch is chosen by, lower is better: the loss on
            the observe split, or the metric's cost where a method says so. None where
            nothing is observed.
        network: as it is after the epoch, to be looked at alone; None where it is not
            shown.
    """

    number: int
    epochs: int
    train_loss: float
    observe_score: float | None = None
    network: nn.Module | None = field(default=None, compare=False, repr=False)


class ObserveLoss:
    """The loss on the observe split, as one set. A loss costs no metric query.

    Args:
        loss: outputs and labels to a scalar.
        observe: the examples.
    """

    def __init__(self, loss: Loss, observe: Examples) -> None:
        self._loss = loss
        self._observe = observe

    def __call__(self, network: nn.Module) -> float:
        """Return the loss of a network, which is left in evaluation mode."""
        outputs = predict_examples(network, self._observe)
        with torch.no_grad():
            return float(self._loss(outputs, labels(self._observe)))


class ObserveMetric:
    """The metric's cost on the observe split: one query.

    Args:
        validation: holds the examples, and counts the queries.
    """

    def __init__(self, validation: Validation) -> None:
        self._validation = validation

    def __call__(self, network: nn.Module) -> float:
        """Return the cost of a network, which is left in evaluation mode.

        NaN, without a query, if an output is not finite: a metric may refuse those.
        """
        outputs = predict_examples(network, self._validation.observe)
        if not bool(outputs.isfinite().all()):
            return math.nan
        return float(self._validation.costs(outputs[None]))


class BestState:
    """The state of a network to return to: its best one, or its latest.

    Args:
        network: the network to watch.
        keep_best: keep the state of lowest score; otherwise the latest.

    Attributes:
        epoch: epoch of the kept state; 0 is the state before training.
        score: score of that epoch; infinite where there is none.
    """

    def __init__(self, network: nn.Module, *, keep_best: bool) -> None:
        self._network = network
        self._keep_best = keep_best
        self.epoch = 0
        self.score = math.inf
        self._weights = copy.deepcopy(network.state_dict())

    def offer(self, epoch: Epoch) -> None:
        """Keep the network's present state if it is to be kept.

        Raises:
            DivergedError: if the score or a weight is not finite.
        """
        score = epoch.observe_score
        if score is not None:
            self.check_finite(score, epoch.number, epoch.epochs)
        if self._keep_best and (score is None or score >= self.score):
            return
        weights = self._network.state_dict()
        if not all_finite(weights):
            what = "a weight became non-finite"
            raise self._diverged(what, epoch.number, epoch.epochs)
        self.epoch = epoch.number
        self.score = math.inf if score is None else score
        self._weights = copy.deepcopy(weights)

    def check_finite(self, figure: float, number: int, epochs: int) -> None:
        """Check that a figure of an epoch is a number.

        Raises:
            DivergedError: if it is not finite; whoever catches it puts the network
                back.
        """
        if not math.isfinite(figure):
            raise self._diverged(f"the loss became {figure}", number, epochs)

    def noted(self, name: str) -> dict[str, float]:
        """Return the kept epoch, and its score by a name if there is one."""
        found: dict[str, float] = {"best_epoch": self.epoch}
        return found | ({name: self.score} if math.isfinite(self.score) else {})

    def put_back(self) -> None:
        """Return the network to the kept state, in evaluation mode."""
        self._network.load_state_dict(self._weights)
        self._network.eval()

    def _diverged(self, what: str, number: int, epochs: int) -> DivergedError:
        return DivergedError(
            f"{what} in epoch {number} of {epochs}; the network is back in its state "
            f"after epoch {self.epoch}"
        )

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        return {"epoch": self.epoch, "score": self.score, "weights": self._weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.epoch, self.score = state["epoch"], state["score"]
        self._weights = state["weights"]


def balanced_once(observe: Examples, generator: torch.Generator) -> Split:
    """Return as many examples, resampled once to equal classes.

    Raises:
        DataError: if there is one class only.
    """
    targets = labels(observe)
    sampler = BalancedSampler(targets.cpu(), len(observe))
    index = sampler.draw(1, generator)[0].to(targets.device)
    return Split(observe.batch(index), targets[index])
