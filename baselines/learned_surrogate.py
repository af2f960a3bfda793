"""Learned surrogate loss: a set network imitates the metric, the network descends it.

Two Adam runs alternate on mini-batches: the surrogate regresses the metric's cost of a
set of (label, probability) pairs, then the network takes a step down the surrogate,
which is held fixed.

Source: Grabocka, Scholz and Schmidt-Thieme, 2019. No official code is known; what the
paper leaves open was decided as follows. h is 2-30-30 and g 30-30-1 with leaky ReLU and
a sigmoid at the end; Adam 1e-3 for both, batches of 100. The surrogate is warmed up
for 200 steps, then takes five steps per step of the network in the first tenth of the
iterations and one afterwards. Its targets are the metric's cost at threshold 0.5, in
the mode (dropout, batch norm) the network trains in, on three sets per mini-batch: the
predictions, their mixture with the labels, and with randomly flipped labels.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from baselines.fitting import BestState, draw_batches, make_adam, seeded_globally
from baselines.losses import LOSSES
from baselines.network_method import (
    NETWORK_METHODS,
    Epoch,
    NetworkMethod,
    NetworkResult,
    Recipe,
    Schedule,
    check_binary,
    fit,
    predict,
)
from baselines.set_surrogate import (
    SetSurrogate,
    enrich,
    metric_costs,
    rank_correlation,
)
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric, to_cost
from metricopt.sampling import Sampler, Split

HELD_OUT_BATCHES = 100
"""Mini-batches of the observe split on which the surrogate is checked at the end."""


@NETWORK_METHODS.register("learned-surrogate")
@dataclass(frozen=True, kw_only=True)
class LearnedSurrogate(NetworkMethod):
    """Train down a surrogate that is learned from the metric along the way.

    `schedule.epochs` times the mini-batches of an epoch are the iterations; on A9A,
    9 epochs of batch 100 are 3,000. Every epoch the metric is queried on the observe
    split to choose the best one. `queries` counts all metric evaluations, nearly all
    of them on a mini-batch only; notes tell the two kinds apart, and give the rank
    correlation of surrogate and metric on held-out mini-batches, enriched and of
    plain predictions (0 where either is constant).

    Attributes:
        pretrain_epochs: epochs of cross-entropy before; the source starts without.
        warm_up: steps of the surrogate before the first one of the network.
        eager_share: share of the iterations, the first ones, in which the surrogate
            takes more than one step.
        eager_steps: its steps in those.
        surrogate_rate: rate of Adam for the surrogate.
        width: hidden units of the surrogate.
    """

    pretrain_epochs: int = 0
    warm_up: int = 200
    eager_share: float = 0.1
    eager_steps: int = 5
    surrogate_rate: float = 1e-3
    width: int = 30

    def __post_init__(self) -> None:
        counts = (self.pretrain_epochs, self.warm_up, self.eager_steps - 1)
        if min(counts) < 0 or not 0 <= self.eager_share <= 1:
            raise ConfigError(
                "a learned surrogate needs pretrain_epochs >= 0, warm_up >= 0, "
                "eager_steps >= 1 and eager_share in [0, 1], got "
                f"pretrain_epochs={self.pretrain_epochs}, warm_up={self.warm_up}, "
                f"eager_steps={self.eager_steps}, eager_share={self.eager_share}"
            )
        if self.surrogate_rate <= 0 or self.width < 1:
            raise ConfigError(
                "a learned surrogate needs surrogate_rate > 0 and width >= 1, got "
                f"surrogate_rate={self.surrogate_rate}, width={self.width}"
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
        """Train a copy of the network; see `NetworkMethod.train`.

        Raises:
            ShapeError: if the network has more than one output.
            DataError: if a split lacks one of the classes.
        """
        network = copy.deepcopy(network)
        for split in (train, observe):
            outputs = predict(network, split.inputs[:1])
            check_binary(outputs, split.targets, user="a learned surrogate")
        self._pretrain(network, train, observe, schedule, generator)
        with seeded_globally(generator, train.inputs.device):
            run = _Alternation(self, network, train, metric, schedule, generator)
            best = run.train(observe)
            sampler = schedule.sampler(observe)
            notes = run.correlations(observe, sampler)
        steps = schedule.steps_per_epoch(len(train))
        return NetworkResult(
            network,
            threshold=0.0,
            queries=run.batch_queries + schedule.epochs,
            gradient_steps=steps * (schedule.epochs + self.pretrain_epochs),
            notes={
                "best_epoch": best.epoch,
                "observe_cost": best.score,
                "batch_queries": run.batch_queries,
                "observe_queries": schedule.epochs,
                **notes,
            },
        )

    def _pretrain(
        self,
        network: nn.Module,
        train: Split,
        observe: Split,
        schedule: Schedule,
        generator: torch.Generator,
    ) -> None:
        if self.pretrain_epochs:
            before = replace(schedule, epochs=self.pretrain_epochs)
            recipe = Recipe(LOSSES.get("cross-entropy"), before, self.on_epoch)
            fit(network, train, observe, recipe=recipe, generator=generator)


class _Batch(NamedTuple):
    """A mini-batch with the network's predictions for it, all of shape [n]."""

    targets: Tensor
    labels: Tensor
    probabilities: Tensor


class _Alternation:
    """State of one training run: both networks, their optimizers, queries so far."""

    def __init__(
        self,
        settings: LearnedSurrogate,
        network: nn.Module,
        train: Split,
        metric: Metric,
        schedule: Schedule,
        generator: torch.Generator,
    ) -> None:
        self.settings, self.schedule, self.metric = settings, schedule, metric
        self.network, self.split, self.generator = network, train, generator
        self.sampler = schedule.sampler(train)
        self.weights = [w for w in network.parameters() if w.requires_grad]
        self.network_adam = make_adam(network, schedule)
        self.surrogate = SetSurrogate(settings.width).to(train.inputs)
        self.surrogate_adam = torch.optim.Adam(
            self.surrogate.parameters(), lr=settings.surrogate_rate, fused=True
        )
        self.batch_queries = 0

    def train(self, observe: Split) -> BestState:
        steps = self.schedule.steps_per_epoch(len(self.split))
        eager = math.ceil(self.settings.eager_share * steps * self.schedule.epochs)
        best = BestState(self.network, self.schedule.keep_best)
        self.network.train()
        self._fit_surrogate(self.settings.warm_up)
        for number in range(1, self.schedule.epochs + 1):
            done = (number - 1) * steps
            mean = self._run_epoch(steps, max(0, eager - done))
            epoch = Epoch(number, mean, self._observe(observe))
            best.offer(epoch)
            if self.settings.on_epoch is not None:
                self.settings.on_epoch(epoch)
        best.restore()
        return best

    def _observe(self, observe: Split) -> float:
        outputs = predict(self.network, observe.inputs)
        if not bool(outputs.isfinite().all()):
            return math.nan
        value = self.metric.values(outputs[None], observe.targets)
        return float(to_cost(self.metric, value))

    def _run_epoch(self, steps: int, eager: int) -> float:
        self.network.train()
        losses = []
        batches = draw_batches(self.split, self.sampler, steps, self.generator)
        for step, split in enumerate(batches):
            if step < eager:
                self._fit_surrogate(self.settings.eager_steps - 1)
            batch = self._predict(split)
            self._surrogate_step(batch)
            losses.append(self._network_step(batch))
        return float(torch.stack(losses).mean())

    def _fit_surrogate(self, steps: int) -> None:
        batches = draw_batches(self.split, self.sampler, steps, self.generator)
        for split in batches:
            with torch.no_grad():
                batch = self._predict(split)
            self._surrogate_step(batch)

    def _predict(self, split: Split) -> _Batch:
        probabilities = self.network(split.inputs)[:, 0].sigmoid()
        return _Batch(split.targets, split.targets.to(probabilities), probabilities)

    def _surrogate_step(self, batch: _Batch) -> None:
        sets, costs = self._query(batch)
        loss = (self.surrogate(batch.labels, sets) - costs).square().mean()
        self.surrogate_adam.zero_grad()
        loss.backward()
        self.surrogate_adam.step()

    def _query(self, batch: _Batch) -> tuple[Tensor, Tensor]:
        sets = enrich(batch.labels, batch.probabilities.detach())
        # A metric may refuse what is not a number; the divergence is reported by the
        # epoch's loss instead, which is not a number either.
        costs = metric_costs(self.metric, sets.nan_to_num(0.5), batch.targets)
        self.batch_queries += len(sets)
        return sets, costs

    def _network_step(self, batch: _Batch) -> Tensor:
        loss = self.surrogate(batch.labels, batch.probabilities[None])[0]
        self.network_adam.zero_grad()
        # Only the network's weights receive gradients: the surrogate is held fixed.
        loss.backward(inputs=self.weights)
        self.network_adam.step()
        return loss.detach()

    def correlations(self, observe: Split, sampler: Sampler) -> dict[str, float]:
        probabilities = predict(self.network, observe.inputs)[:, 0].sigmoid()
        pairs = Split(probabilities, observe.targets)
        predicted, true = [], []
        for split in draw_batches(pairs, sampler, HELD_OUT_BATCHES, self.generator):
            batch = _Batch(split.targets, split.targets.to(split.inputs), split.inputs)
            sets, costs = self._query(batch)
            with torch.no_grad():
                predicted.append(self.surrogate(batch.labels, sets))
            true.append(costs)
        surrogate, metric = torch.stack(predicted).cpu(), torch.stack(true).cpu()
        return {
            "rank_correlation": rank_correlation(surrogate, metric),
            "rank_correlation_plain": rank_correlation(surrogate[:, 0], metric[:, 0]),
        }
