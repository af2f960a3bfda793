"""MOEW, metric-optimised example weights: which examples matter for the metric?

An example weighs sigmoid(a . u), normalised within the mini-batch, where u embeds the
example and its label. The vector a is searched by Bayesian optimisation of the metric
on the observe split; every trial is a training.

Source: Zhao et al., 2019, and its published example. The full protocol of 200
trainings from the given weights is `rounds=10, per_round=20, search_epochs=0`; the
default is a reduced one of shorter trials, whose winner is trained once more, at full
length. Trials begin with the weights that are given. The embedding of features is
principal components instead of an autoencoder.
"""

import copy
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from baselines.learned_losses.example_weights import (
    FeatureEmbedding,
    LabelEmbedding,
    cross_entropies,
    example_weights,
)
from baselines.learned_losses.weight_search import Array, WeightSearch
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
    class_count,
)
from baselines.training.batches import Batches
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.selection import BestState, ObserveMetric
from baselines.validation import Validation
from metricopt.errors import ConfigError, DivergedError, require_choice

Embedding = Literal["labels", "features"]
KNOWN = 2_048
"""Training examples that the principal components are fitted to."""


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
        radius: of the ball that a lies in.
        embedding: of an example: its label ("labels"), or principal components of the
            features of the given network, with the label ("features").
    """

    rounds: int = 5
    per_round: int = 8
    search_epochs: int = 10
    radius: float = 1.0
    embedding: Embedding = "labels"

    def __post_init__(self) -> None:
        if min(self.rounds, self.per_round) < 1 or self.search_epochs < 0:
            raise ConfigError(
                "MOEW needs rounds >= 1, per_round >= 1 and search_epochs >= 0, got "
                f"rounds={self.rounds}, per_round={self.per_round}, "
                f"search_epochs={self.search_epochs}"
            )
        if self.radius <= 0:
            raise ConfigError(f"MOEW needs radius > 0, got radius={self.radius}")
        require_choice("embedding", self.embedding, Embedding)

    def train(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> NetworkResult:
        """Train a copy of the network; see `NetworkMethod.train`.

        Raises:
            DivergedError: if the training that is returned diverges.
        """
        self.check_problem(network, batches, validation)
        trials = _Trials(self, network, batches, validation, training, generator)
        seed = int(torch.randint(2**31, (), generator=generator))
        random = np.random.default_rng(seed)
        search = WeightSearch(trials.embedding.size, self.radius, random)
        for _ in range(self.rounds):
            asked = search.ask(self.per_round)
            search.tell(asked, [trials.cost(vector) for vector in asked])
        best = int(np.argmin(search.costs))
        notes: dict[str, float | list[float]] = {
            "costs": search.costs,
            "weights": [round(value, 6) for value in search.tried[best].tolist()],
        }
        if self.search_epochs:
            run, kept = trials.finish(search.tried[best])
            trained = run.network
            notes |= kept.noted("observe_cost")
        elif trials.best is None:
            raise DivergedError("all trials of MOEW diverged")
        else:
            trained = trials.best
            notes["observe_cost"] = search.costs[best]
        return NetworkResult(
            trained,
            threshold=0.0,
            queries=validation.queries,
            gradient_steps=trials.steps,
            notes=notes,
        )


class _Trials:
    """Trainings with weights.

    Attributes:
        embedding: of examples.
        steps: taken on weights of networks so far.
        best: the network of the trial of lowest cost so far, in evaluation mode.
    """

    best: nn.Module | None = None

    def __init__(
        self,
        settings: MetricOptimizedExampleWeights,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        training: Training,
        generator: torch.Generator,
    ) -> None:
        self.settings, self.network, self.batches = settings, network, batches
        self._observe, self.training = ObserveMetric(validation), training
        self.generator, self.steps, self._lowest = generator, 0, 2.0
        classes = class_count(network, batches)
        self.embedding: LabelEmbedding | FeatureEmbedding = LabelEmbedding(classes)
        if settings.embedding == "features":
            count = min(KNOWN, len(batches.targets))
            inputs, targets = batches.plain(count), batches.targets[:count]
            self.embedding = FeatureEmbedding(network, inputs, targets, classes)

    def cost(self, vector: Array) -> float:
        """Return the metric's cost after a trial: one query; 1 if it diverges."""
        epochs = self.settings.search_epochs or self.training.epochs
        training = replace(self.training, epochs=epochs, keep_best=False)
        run, loss = self._run(vector, training)
        try:
            train(run, hooks=Hooks(self.settings.on_epoch))
            cost = self._observe(run.network)
        except DivergedError:
            self.steps += self.batches.steps_per_epoch  # of the epoch that failed
            return 1.0
        finally:
            loss.close()
            self.steps += run.epoch * self.batches.steps_per_epoch
        if not np.isfinite(cost):
            return 1.0
        if cost < self._lowest:
            self.best, self._lowest = run.network, cost
        return cost

    def finish(self, vector: Array) -> tuple[TrainingRun, BestState]:
        """Train at full length."""
        run, loss = self._run(vector, self.training)
        try:
            kept = train(run, hooks=Hooks(self.settings.on_epoch))
        finally:
            loss.close()
        self.steps += run.steps
        return run, kept

    def _run(self, vector: Array, training: Training) -> tuple[TrainingRun, "_Loss"]:
        network = copy.deepcopy(self.network)
        loss = _Loss(network, vector, self.embedding)
        run = TrainingRun(
            network,
            loss,
            self.batches,
            training,
            generator=self.generator,
            observe=self._observe if training.keep_best else None,
        )
        return run, loss


class _Loss:
    """Weighted cross-entropy of the mini-batch that a network saw last."""

    def __init__(
        self,
        network: nn.Module,
        vector: Array,
        embedding: LabelEmbedding | FeatureEmbedding,
    ) -> None:
        self._vector = torch.from_numpy(vector).float()
        self._embedding, self._inputs = embedding, torch.empty(0)
        self._hook = network.register_forward_pre_hook(self._note)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        known = self._embedding(self._inputs, targets)
        weights = example_weights(known @ self._vector.to(known))
        return (weights * cross_entropies(outputs, targets)).mean()

    def close(self) -> None:
        """Stop watching the network."""
        self._hook.remove()

    def _note(self, network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._inputs = inputs[0].detach()
