"""MOEW, metric-optimised example weights: which examples matter for the metric?

An example weighs sigmoid(a . u), normalised within the mini-batch, where u embeds the
example. The vector a is searched by Bayesian optimisation of the metric on the observe
split; every trial is a training.

Source: Zhao et al., 2019, and its published example. The full protocol of 200
trainings from the given weights is `rounds=10, per_round=20, search_epochs=0`; the
default is a reduced one of shorter trials, whose winner is trained once more, at full
length. Trials begin with the weights that are given. Differs: u is the label alone,
one-hot; theirs may be of an autoencoder of the features.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from baselines.learned_losses.example_weights import cross_entropies, example_weights
from baselines.learned_losses.weight_search import Array, WeightSearch
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
    Notes,
)
from baselines.training.selection import ObserveMetric
from metricopt.errors import DivergedError, require_ranges
from metricopt.losses.contract import Loss


@NETWORK_METHODS.register("moew")
@dataclass(frozen=True, kw_only=True)
class MetricOptimizedExampleWeights(NetworkMethod):
    """Train with weights of the examples that were searched by the metric.

    Every trial costs one query on the observe split. With `keep_best` the last training
    makes one after every epoch. A trial that diverges counts as a cost of 1.

    Attributes:
        rounds: batches of trials.
        per_round: trials of a batch.
        search_epochs: epochs of a trial; 0 for the whole length, and then the network
            of the best trial is returned.
        radius: radius of the ball that a lies in.
    """

    rounds: int = 5
    per_round: int = 8
    search_epochs: int = 10
    radius: float = 1.0

    def __post_init__(self) -> None:
        require_ranges(
            "MOEW",
            vars(self),
            rounds=">= 1",
            per_round=">= 1",
            search_epochs=">= 0",
            radius="> 0",
        )

    def _train(self, given: Assignment) -> NetworkResult:
        trials = _Trials(self.search_epochs or given.training.epochs, given)
        seed = int(torch.randint(2**31, (), generator=given.generator))
        random = np.random.default_rng(seed)
        search = WeightSearch(given.class_count(), self.radius, random)
        for _ in range(self.rounds):
            asked = search.ask(self.per_round)
            search.tell(asked, [trials.cost(vector) for vector in asked])
        best = int(np.argmin(search.costs))
        vector = search.tried[best]
        notes: Notes = {
            "costs": search.costs,
            "weights": [round(value, 6) for value in vector.tolist()],
        }
        if self.search_epochs:
            trained = copy.deepcopy(given.network)
            run = given.trained(trained, weighted_loss(vector), given.metric_score())
            trials.steps += run.steps
            notes |= run.best.noted("observe_cost")
        elif trials.best is None:
            raise DivergedError("all trials of MOEW diverged")
        else:
            trained = trials.best
            notes["observe_cost"] = search.costs[best]
        return given.result(trained, trials.steps, notes)


class _Trials:
    """Trainings with weights.

    Args:
        epochs: length of each.
        given: what is trained, and the metric.

    Attributes:
        steps: taken on weights of networks so far.
        best: the network of the trial of lowest cost so far, in evaluation mode.
    """

    best: nn.Module | None = None

    def __init__(self, epochs: int, given: Assignment) -> None:
        self._given, self.steps, self._lowest = given, 0, 2.0
        self._training = replace(given.training, epochs=epochs, keep_best=False)

    def cost(self, vector: Array) -> float:
        """Return the metric's cost after a trial: one query; 1 if it diverges."""
        network = copy.deepcopy(self._given.network)
        of_epoch = self._given.batches.steps_per_epoch
        run = self._given.run(network, weighted_loss(vector), None, self._training)
        try:
            self._given.finish(run)
            cost = ObserveMetric(self._given.validation)(network)
        except DivergedError:
            self.steps += of_epoch  # of the epoch that failed
            return 1.0
        finally:
            self.steps += run.epoch * of_epoch
        if not np.isfinite(cost):
            return 1.0
        if cost < self._lowest:
            self.best, self._lowest = network, cost
        return cost


def weighted_loss(vector: Array) -> Loss:
    """Return cross-entropy with the weights that a vector gives to the labels."""
    direction = torch.from_numpy(vector).float()

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        known = functional.one_hot(targets.long(), len(direction)).float()
        weights = example_weights(known @ direction.to(known))
        return (weights * cross_entropies(outputs, targets)).mean()

    return loss
