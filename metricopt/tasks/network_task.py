"""A task made of a network with an adapter, two splits, a loss and a metric."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter
from metricopt.metrics.base import Metric, to_cost
from metricopt.outputs import targets_at
from metricopt.seeding import Seeds
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.tasks.encoding import Encoded, encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.passes import map_examples_per_pass
from metricopt.tasks.row_losses import Loss, LossesInParts, batched_loss
from metricopt.tasks.sampling import NaturalSampler, Sampler
from metricopt.tasks.task import Task

BATCH_SIZE = 128
"""Examples of a mini-batch if no sampler is given."""


@dataclass(frozen=True)
class Drawing:
    """How a task draws mini-batches, its seeds, and learning rates found so far.

    Attributes:
        sampler: draws mini-batches from train; uniform batches of 128 if None.
        seeds: seeds of the task's own random choices; fixed ones if None.
        rates: learning rates found so far, for tasks with the same train split, loss,
            sampler and seeds to share; see `metricopt.tasks.descent.loss_rate`.
    """

    sampler: Sampler | None = None
    seeds: Seeds | None = None
    rates: dict[tuple[str, int], float] = field(default_factory=dict)


class NetworkTask(Task):
    """Fine-tunes the adapter of a frozen network; features are computed once.

    Methods keep phi on the CPU, where their small tensors are fastest; the network may
    be on any device.

    Args:
        adapter: frozen network theta with adapter.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black-box metric, queried on observe; methods never see it.
        train: examples of the mini-batches; encoded now, unless they are already.
        observe: examples of the metric queries (the papers' validation set).
        drawing: how mini-batches are drawn, and the seeds of the task itself.

    Attributes:
        adapter: frozen network theta with adapter.
        sampler: draws mini-batches from train.
    """

    def __init__(
        self,
        adapter: Adapter,
        loss: Loss,
        metric: Metric,
        *,
        train: Examples | Encoded,
        observe: Examples | Encoded,
        drawing: Drawing | None = None,
    ) -> None:
        drawing = drawing or Drawing()
        super().__init__(adapter.size, seeds=drawing.seeds)
        self.rates = drawing.rates
        self.adapter = adapter
        self._metric = metric
        self._row_losses = batched_loss(loss)
        self._train = encoded(adapter, train)
        self._judge = Judge(adapter, encoded(adapter, observe))
        self.sampler = drawing.sampler or NaturalSampler(len(self._train), BATCH_SIZE)

    @property
    def statistics(self) -> ObservedStatistics | None:
        """Statistics of decisions, where there is one label for each example."""
        targets = self._judge.targets
        if not isinstance(targets, Tensor) or targets.ndim != 1:
            return None
        if targets.is_floating_point():
            return None
        return ObservedStatistics(self._judge, ConfusionStatistics())

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        train, device = self._train, self._train.device
        index = self.sampler.draw(len(phi), generator).to(device)

        def losses(phi: Tensor, index: Tensor) -> Tensor:
            features = train.batch(index.flatten())
            outputs = self.adapter.predict_grouped(features, phi.to(device))
            targets = targets_at(train.targets, index)
            return self._row_losses(outputs, targets).to(phi.device)

        examples = map_examples_per_pass(train.first)
        rows = len(phi) if examples is None else max(1, examples // index.shape[1])
        if rows >= len(phi):
            return losses(phi, index)
        found: Tensor = LossesInParts.apply(phi, index, rows, losses)
        return found

    def _observe(self, phi: Tensor) -> Tensor:
        return to_cost(self._metric, self._judge.values(self._metric, phi))

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        count = len(self._judge.split)
        drawn = torch.randperm(len(self._train), generator=generator)[:count]
        judge = Judge(self.adapter, self._train.part(drawn))
        return to_cost(self._metric, judge.values(self._metric, phi))
