"""A task made of a network with an adapter, two splits, a loss and a metric."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter
from metricopt.adapters.blocks import PhiBlocks
from metricopt.adapters.output_offsets import MeantAdapter
from metricopt.detection.forms import check_found
from metricopt.losses.portfolio import LossFacts, Portfolio, make_portfolio
from metricopt.metrics.base import Metric, to_cost
from metricopt.metrics.confusion import class_shares, confusion_matrices, ratio
from metricopt.metrics.constrained import Bounds, ConstrainedMetric
from metricopt.metrics.scale import Scale
from metricopt.process.seeding import Seeds
from metricopt.reading.loss import check_loss, check_targets, check_train_labels
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.network import check_outputs
from metricopt.reading.outputs import (
    STRUCTURED,
    VALUES,
    Outputs,
    Reads,
    Targets,
    are_embeddings,
    are_labels,
    each,
    parts_of,
    targets_at,
)
from metricopt.statistics.beside import with_columns
from metricopt.statistics.contract import STATISTICS, SeveralStatistics
from metricopt.statistics.precisions import PrecisionStatistics
from metricopt.tasks.encoding import Encoded, encoded, map_examples_per_pass
from metricopt.tasks.examples import Examples
from metricopt.tasks.failed_queries import failing, strict
from metricopt.tasks.judge import Judge
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.row_losses import (
    Loss,
    LossesInParts,
    NativeLoss,
    batched_loss,
    loss_name,
)
from metricopt.tasks.sampling import NaturalSampler, Sampler, check_places
from metricopt.tasks.task import Task

BATCH_SIZE = 128
"""Examples of a mini-batch if no sampler is given."""
DRAWN = 64
"""Mini-batches that class shares are counted in."""


@dataclass(frozen=True)
class Drawing:
    """How a task is fine-tuned: mini-batches, seeds, rates, losses, and what is known.

    Attributes:
        sampler: draws mini-batches from train; uniform batches of 128 if None.
        seeds: seeds of the task's own random choices; fixed ones if None.
        rates: learning rates found so far, for tasks with the same train split, loss,
            sampler and seeds to share; see `metricopt.tasks.descent.loss_rate`.
        portfolio: makes the losses of the portfolio from what is known of the data;
            None for no losses.
        own_losses: the portfolio of a network whose outputs are no class scores.
        meaning: what outputs are; None where they are plain class logits or the
            metric says what they are.
        clusters: the cluster of every example of observe; see `Task.clusters`.
    """

    sampler: Sampler | None = None
    seeds: Seeds | None = None
    rates: dict[tuple[str, int, float], float] = field(default_factory=dict)
    portfolio: Callable[[LossFacts], Portfolio] | None = make_portfolio
    own_losses: Portfolio = field(default_factory=dict)
    meaning: Meaning | None = None
    clusters: Tensor | None = None


class NetworkTask(Task):
    """Fine-tunes the adapter of a frozen network; features are computed once.

    Methods keep phi on the CPU, where their small tensors are fastest; the network may
    be on any device.

    Args:
        adapter: frozen network theta with adapter.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable; of the outputs
            as the network returns them.
        metric: the black-box metric, queried on observe; methods never see it. It gets
            outputs in the form of methods, see `bound_metric`.
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
        self._given = loss
        self.rates = drawing.rates
        self._meaning = meaning = drawing.meaning or PLAIN
        if not meaning.is_plain:
            adapter, loss = MeantAdapter(adapter, meaning), NativeLoss(loss, meaning)
        self.adapter = adapter
        self._metric = metric
        self.clusters = drawing.clusters
        self._loss, self._row_losses = loss, batched_loss(loss)
        self._train = encoded(adapter, train)
        self._judge = Judge(adapter, encoded(adapter, observe))
        self._make_portfolio = drawing.portfolio
        self._own_losses = drawing.own_losses
        self.sampler = drawing.sampler or NaturalSampler(len(self._train), BATCH_SIZE)

    def check(self) -> None:
        """Try the loss on one mini-batch at phi = 0, and look at outputs and targets.

        Raises:
            ConfigError: if the sampler draws what are no places of examples.
            DataError: if the network returns NaN, or a target is out of range.
            LossError: if the loss is not a finite scalar with a finite gradient.
        """
        index = self.sampler.draw(1, self.seeds.generator("check"))
        check_places(index, len(self._train))
        phi = torch.zeros(1, self.size, requires_grad=True)
        outputs, targets = self._drawn(phi, index.to(self._train.device))
        check_outputs(outputs, "train")
        check_outputs(self._untouched, "observe")
        first = each(lambda part: part[0], outputs)
        check_targets(self._given, first, self._train.targets, "train")
        if self._metric.reads == "scores":
            check_targets(self._given, first, self._judge.targets, "observe")
        if self._metric.reads == "detections":
            seen = each(lambda part: part[0], self._untouched)
            check_found(seen, self._judge.targets)
        name, tried = loss_name(self._given), self._row_losses
        meaning = self._meaning
        check_loss(tried, outputs, targets, phi, name=name, meaning=meaning)
        check_train_labels(self._given, first, self._train.targets, meaning)

    @property
    def scale(self) -> Scale:
        """The scale on which values of the metric are costs, after the first query."""
        metric = self._metric
        return Scale(metric.low, metric.high, metric.higher_is_better)

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of the blocks of the adapter."""
        return self.adapter.blocks

    @cached_property
    def statistics(self) -> ObservedStatistics | None:
        """Statistics of outputs, where there is a kind for them and for the targets.

        Embeddings are known by a metric that reads them, or by their unit length.
        """
        outputs, targets = self._untouched, self._judge.targets
        if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
            return None
        reads: Reads | None = self._metric.reads
        if reads == "scores":
            reads = _read(outputs, self._meaning)
        if reads is None or not _fit(outputs, targets, reads):
            return None
        known = [STATISTICS.get(name)() for name in STATISTICS]
        kinds = tuple(
            kind
            for kind in known
            if kind.reads == reads and kind.suits(outputs, targets)
        )
        if not kinds:
            return None
        if reads == "scores" and self.bounds is not None and are_labels(targets):
            kinds = (*kinds, PrecisionStatistics())
        columns, taken = self._judge.split.columns, self._metric.columns
        beside = {name: part for name, part in columns.items() if name in taken}
        kind = SeveralStatistics(with_columns(kinds, beside)).fitted(targets)
        return ObservedStatistics(self._judge, kind, self.clusters)

    @cached_property
    def portfolio(self) -> dict[str, Task]:
        """The task with every loss of the portfolio, where there are statistics."""
        if self.statistics is None or self._make_portfolio is None:
            return {}
        if self.statistics.kind.reads != "scores":
            # Its own loss, too, leaves candidates on its way.
            losses = self._own_losses or {"its own loss": self._loss}
        elif not _fit(self._untouched, self._train.targets, "scores"):
            return {}  # only the loss of the user knows what other targets mean
        else:
            losses = self._make_portfolio(self._loss_facts())
        return {name: self.following(loss) for name, loss in losses.items()}

    def following(self, loss: Loss) -> "NetworkTask":
        """Return this task with another loss; everything else is shared."""
        task = copy.copy(self)
        task._row_losses, task.rates = batched_loss(loss), {}
        return task

    def untouched(self) -> Outputs:
        """Return the outputs of the untouched network on observe, [1, N, C]."""
        return self._untouched

    @cached_property
    def _untouched(self) -> Outputs:
        return self._judge.outputs(torch.zeros(1, self.size))

    def _loss_facts(self) -> LossFacts:
        outputs, observed = self._untouched, self._judge.targets
        train = self._train.targets
        assert isinstance(outputs, Tensor)
        assert isinstance(observed, Tensor) and isinstance(train, Tensor)
        drawn = self.sampler.draw(DRAWN, self.seeds.generator("portfolio")).flatten()
        classes = max(outputs.shape[-1], 2)
        matrix = confusion_matrices(outputs, observed)[0].cpu()
        return LossFacts(
            outputs=outputs.shape[-1],
            sampled=class_shares(train.cpu()[drawn], classes),
            observed=class_shares(observed, classes),
            recalls=ratio(matrix.diagonal(), matrix.sum(1)),
            batch_size=self.sampler.batch_size,
        )

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        train, device = self._train, self._train.device
        index = self.sampler.draw(len(phi), generator).to(device)

        def losses(phi: Tensor, index: Tensor) -> Tensor:
            return self._row_losses(*self._drawn(phi, index)).to(phi.device)

        examples = map_examples_per_pass(train.first)
        rows = len(phi) if examples is None else max(1, examples // index.shape[1])
        if rows >= len(phi):
            return losses(phi, index)
        found: Tensor = LossesInParts.apply(phi, index, rows, losses)
        return found

    def _drawn(self, phi: Tensor, index: Tensor) -> tuple[Outputs, Targets]:
        """Return outputs [B, n, C] and targets [B, n] of mini-batches."""
        train = self._train
        features = train.batch(index.flatten())
        outputs = self.adapter.predict_grouped(features, phi.to(train.device))
        return outputs, targets_at(train.targets, index)

    def _observe(self, phi: Tensor) -> Tensor:
        known = each(Tensor.clone, self._untouched) if self._is_known(phi) else None
        return to_cost(self._metric, self._judge.values(self._metric, phi, known))

    @property
    def bounds(self) -> Bounds | None:
        """Bounds of a metric that has some."""
        metric = self._metric
        return metric.known if isinstance(metric, ConstrainedMetric) else None

    def _observe_each(self, phi: Tensor) -> Tensor:
        metric = self._metric
        if not isinstance(metric, ConstrainedMetric):
            return super()._observe_each(phi)
        known = each(Tensor.clone, self._untouched) if self._is_known(phi) else None
        asked = {metric.name: (metric.each, metric.columns)}
        return self._judge.called(phi, asked, known)[metric.name]

    def _is_known(self, phi: Tensor) -> bool:
        """Whether outputs are kept, as `check` or statistics had to know them."""
        return len(phi) == 1 and "_untouched" in vars(self) and not phi.any()

    @property
    def examples(self) -> int:
        """Number of examples N of the observe split."""
        return len(self._judge.split)

    @property
    def failures(self) -> Sequence[str]:
        """Messages of the queries that failed and were forgiven."""
        return [each for part in failing(self._metric) for each in part.failures]

    def _observe_part(self, phi: Tensor, places: Tensor) -> Tensor:
        known, judge = None, Judge(self.adapter, self._judge.split.part(places))
        if self._is_known(phi):
            known = each(lambda part: part[:, places.to(part.device)], self._untouched)
        metric = self._metric if len(places) == self.examples else self._strict
        return to_cost(metric, judge.values(metric, phi, known))

    def _observe_within(self, phi: Tensor, places: Tensor) -> Tensor:
        metric, part = self._strict, Judge(self.adapter, self._judge.split.part(places))

        def mixed(untouched: Tensor, moved: Tensor) -> Tensor:
            return untouched.index_copy(1, places.to(untouched.device), moved)

        costs = []
        for row in phi.split(1):
            pairs = zip(
                parts_of(self._untouched), parts_of(part.outputs(row)), strict=True
            )
            found = tuple(mixed(*pair) for pair in pairs)
            known = found[0] if isinstance(self._untouched, Tensor) else found
            costs.append(to_cost(metric, self._judge.values(metric, row, known)))
        return torch.cat(costs)

    @property
    def _strict(self) -> Metric:
        return strict(self._metric)

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        count = len(self._judge.split)
        statistics, targets = self.statistics, self._train.targets
        if statistics is not None and statistics.compares:
            assert isinstance(targets, Tensor)
            drawn = statistics.kind.draw(targets.cpu(), count, generator)
        else:
            drawn = torch.randperm(len(self._train), generator=generator)[:count]
        judge = Judge(self.adapter, self._train.part(drawn))
        return to_cost(self._metric, judge.values(self._metric, phi))


def _read(outputs: Tensor, meaning: Meaning) -> Reads | None:
    """Return what outputs [1, N, ...] are that a metric reads as predictions."""
    if meaning.kind == "values" or meaning.kind == "amounts":
        return meaning.kind
    if meaning.kind == "raw":
        return None
    if meaning.truth == "multi-label":
        return "labels"
    alike = outputs.ndim == 3 and are_embeddings(outputs)
    return "embeddings" if alike or meaning.kind == "embeddings" else "scores"


def _fit(outputs: Outputs, targets: Targets, reads: Reads) -> bool:
    """Return whether targets are those of outputs [1, N, C] that are read so."""
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        return False
    if reads in STRUCTURED:
        return True
    if reads in ("labels", *VALUES):
        one = outputs.shape[2:] == (1,) and targets.ndim == 1
        same = outputs.shape[1:] == targets.shape
        # A target that is missing, as NaN, is known by the user's loss and metric.
        whole = bool(targets.isfinite().all())
        return outputs.ndim == 3 and (one or same) and whole
    if not are_labels(targets) or outputs.ndim != 3:
        return False
    low, high = targets.aminmax()
    return reads != "scores" or bool(low >= 0 and high < max(outputs.shape[-1], 2))
