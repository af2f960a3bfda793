"""Learned surrogate loss: a surrogate imitates the metric, and the network descends it.

The two are trained in turns on mini-batches. First the surrogate, a network on sets of
(label, probability) pairs, takes a step towards the metric's cost of a set. Then the
network takes a step that lowers the surrogate, which is held fixed.

Source: Grabocka, Scholz and Schmidt-Thieme, 2019. No official code is known. What the
paper leaves open was decided as follows. h is 2-30-30 and g is 30-30-1, with leaky ReLU
and a sigmoid at the end. The optimiser of the surrogate is Adam with rate 1e-3. The
surrogate takes 200 steps before the first step of the network; then five steps for each
step of the network in the first tenth of the iterations, and one afterwards. Its
targets are the metric's costs at threshold 0.5, of the network in training mode
(dropout, batch norm), on three sets per mini-batch: the predictions, the predictions
mixed with the labels, and mixed with randomly flipped labels.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from baselines.learned_losses.set_surrogate import (
    SetSurrogate,
    agreement,
    enrich,
    metric_costs,
)
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import SampledBatches
from baselines.training.loop import Hooks
from baselines.training.prediction import predict_examples
from baselines.training.selection import ObserveMetric
from baselines.validation import check_binary, labels
from metricopt.errors import require_ranges
from metricopt.tasks.sampling import Split

HELD_OUT_BATCHES = 100
"""Mini-batches of the observe split on which the surrogate is checked at the end."""


@NETWORK_METHODS.register("learned-surrogate")
@dataclass(frozen=True, kw_only=True)
class LearnedSurrogate(NetworkMethod):
    """Minimise a surrogate that learns the metric along the way.

    An iteration is a step of the network; on A9A, 9 epochs of batch 100 are 3,000. Its
    rate is constant. After every epoch the metric is queried on the observe split, to
    choose the best one.

    All metric queries count, although nearly all of them are on a mini-batch only; the
    notes tell the two kinds apart. The notes also give the rank correlation of
    surrogate and metric on held-out mini-batches, once on the enriched sets and once on
    the plain predictions (0 where either is constant).

    Attributes:
        warm_up: steps of the surrogate before the first one of the network.
        eager_share: share of the iterations, at the beginning, in which the surrogate
            takes more than one step.
        eager_steps: number of its steps in each of those.
        surrogate_rate: rate of Adam for the surrogate.
        width: hidden units of the surrogate.
    """

    warm_up: int = 200
    eager_share: float = 0.1
    eager_steps: int = 5
    surrogate_rate: float = 1e-3
    width: int = 30

    def __post_init__(self) -> None:
        require_ranges(
            "a learned surrogate",
            vars(self),
            warm_up=">= 0",
            eager_share="in [0, 1]",
            eager_steps=">= 1",
            surrogate_rate="> 0",
            width=">= 1",
        )

    def check_suits(self, outputs: Tensor, targets: Tensor) -> None:
        """Check for one logit and two classes; see `NetworkMethod.check_suits`."""
        check_binary(outputs, targets, user="a learned surrogate")

    def _train(self, given: Assignment) -> NetworkResult:
        network = copy.deepcopy(given.network)
        imitation = _Imitation(self, given, network)
        best = given.finish(imitation.run, imitation)
        correlations = imitation.correlations()
        queries, epochs = given.validation.queries, given.training.epochs
        counts = {"batch_queries": queries - epochs, "observe_queries": epochs}
        notes = best.noted("observe_cost") | counts | correlations
        return given.result(network, imitation.run.steps, {**notes})


class _Batch(NamedTuple):
    """A mini-batch with the network's predictions for it, all of shape [n]."""

    targets: Tensor
    labels: Tensor
    probabilities: Tensor


class _Imitation(Hooks):
    """The surrogate and its optimiser, with the run that trains the network.

    The run calls `loss`, which takes a step of the surrogate on the mini-batch first.

    Args:
        settings: settings of the method.
        given: where mini-batches come from, and what counts the queries.
        network: what is trained.
    """

    def __init__(
        self, settings: LearnedSurrogate, given: Assignment, network: nn.Module
    ) -> None:
        super().__init__(settings.on_epoch)
        self.settings, self.network = settings, network
        self.batches, self.validation = given.batches, given.validation
        training = replace(given.training, schedule="constant")
        observe = ObserveMetric(self.validation)
        self.run = given.run(network, self.loss, observe, training)
        self.eager = math.ceil(settings.eager_share * self.run.steps)
        with self.run.randomness():
            inputs = self.batches.plain(1)
            self.surrogate = SetSurrogate(settings.width).to(inputs)
            self.optimizer = torch.optim.Adam(
                self.surrogate.parameters(), lr=settings.surrogate_rate, fused=True
            )
            network.train()
            self.fit_surrogate(settings.warm_up)

    def state(self) -> dict[str, Any]:
        """Return the surrogate and its optimiser."""
        return {
            "surrogate": self.surrogate.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.surrogate.load_state_dict(state["surrogate"])
        self.optimizer.load_state_dict(state["optimizer"])

    def before_step(self, step: int, steps: int) -> None:
        """Take the further steps of the surrogate that come before an early step."""
        if step < self.eager:
            self.fit_surrogate(self.settings.eager_steps - 1)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the surrogate's cost of a mini-batch, after it has learned from it."""
        batch = _as_batch(outputs, targets)
        self.surrogate_step(batch)
        # Held fixed: only the network's weights receive gradients.
        self.surrogate.requires_grad_(False)
        cost: Tensor = self.surrogate(batch.labels, batch.probabilities[None])[0]
        self.surrogate.requires_grad_(True)
        return cost

    def fit_surrogate(self, steps: int) -> None:
        """Take steps of the surrogate alone, each on a mini-batch of its own."""
        for inputs, targets in self.batches.draw(steps, self.run.generator):
            with torch.no_grad():
                outputs = self.run.forward(inputs)
            self.surrogate_step(_as_batch(outputs, targets))

    def surrogate_step(self, batch: _Batch) -> None:
        """Take a step of the surrogate towards the metric: three queries."""
        sets, costs = self.query(batch)
        loss = (self.surrogate(batch.labels, sets) - costs).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def query(self, batch: _Batch) -> tuple[Tensor, Tensor]:
        """Return the enriched sets of a mini-batch, and the metric's cost of each."""
        sets = enrich(batch.labels, batch.probabilities.detach())
        # A metric may refuse NaN. The loss of the epoch is then NaN as well, and
        # reports the divergence.
        known = sets.nan_to_num(0.5)
        return sets, metric_costs(self.validation, known, batch.targets)

    def correlations(self) -> dict[str, float]:
        """Return how well surrogate and metric agree on held-out mini-batches."""
        observe = self.validation.observe
        probabilities = predict_examples(self.network, observe)[:, 0].sigmoid()
        pairs = SampledBatches(
            Split(probabilities, labels(observe)),
            self.batches.batch_size,
            balanced=self.batches.balanced,
        )
        predicted, true = [], []
        with self.run.randomness(), torch.no_grad():
            for drawn, targets in pairs.draw(HELD_OUT_BATCHES, self.run.generator):
                batch = _Batch(targets, targets.to(drawn), drawn)
                sets, costs = self.query(batch)
                predicted.append(self.surrogate(batch.labels, sets))
                true.append(costs)
        surrogate, metric = torch.stack(predicted).cpu(), torch.stack(true).cpu()
        return {
            "rank_correlation": agreement(surrogate, metric),
            "rank_correlation_plain": agreement(surrogate[:, 0], metric[:, 0]),
        }


def _as_batch(outputs: Tensor, targets: Tensor) -> _Batch:
    probabilities = outputs[:, 0].sigmoid()
    return _Batch(targets, targets.to(probabilities), probabilities)
