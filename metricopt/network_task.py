"""A task made of a network with an adapter, two splits, a loss and a metric."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.adapters.base import Adapter, Features
from metricopt.errors import MetricOptError
from metricopt.metrics.base import Metric, to_cost
from metricopt.sampling import NaturalSampler, Sampler, Split
from metricopt.task import Task

Loss = Callable[[Tensor, Tensor], Tensor]

# Examples times rows of phi evaluated in one forward pass: enough to amortise the
# calls, little enough that activations stay in the processor's cache.
EXAMPLES_PER_PASS = 16_384
# The same for feature maps: their numbers. On two maps of 64 x 8 x 8 per example it is
# several times as fast as all examples at once. Fewer cost more calls; more leave the
# cache, and the memory they need is handed out anew at every pass.
MAP_NUMBERS_PER_PASS = 2**20
# Examples times rows whose outputs are held at once there. Maps are read from memory
# once for all of them, which takes longer than the arithmetic of one row.
MAP_OUTPUTS_HELD = 2**18

# The same for what is computed once: images, whose activations are many, come in
# smaller chunks than rows of a table.
EXAMPLES_ENCODED = 4_096
NUMBERS_ENCODED = 2**17


@dataclass(frozen=True, eq=False)
class EncodedSplit:
    """Examples of one split as an adapter has encoded them, for many tasks to share.

    Attributes:
        features: what the adapter encoded of N examples.
        targets: their labels, shape [N].
    """

    features: Features
    targets: Tensor


class NetworkTask(Task):
    """Fine-tunes the adapter of a frozen network; features are computed once.

    Methods keep phi on the CPU, where their small tensors are fastest; the network may
    be on any device.

    Args:
        adapter: frozen network theta with adapter.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black-box metric, queried on the observe split.
        train: examples of the mini-batches; encoded now, unless they are already.
        observe: examples of the metric queries (the papers' validation set).
        sampler: draws mini-batches from `train`; uniform batches of 128 if None.
    """

    def __init__(
        self,
        adapter: Adapter,
        loss: Loss,
        metric: Metric,
        *,
        train: Split | EncodedSplit,
        observe: Split | EncodedSplit,
        sampler: Sampler | None = None,
    ) -> None:
        super().__init__(adapter.size)
        self.adapter = adapter
        self.metric = metric
        learned, observed = (encoded(adapter, split) for split in (train, observe))
        self._row_losses = batched_loss(loss)
        self._train_features, self._train_targets = learned.features, learned.targets
        self.sampler = sampler or NaturalSampler(len(learned.targets), 128)
        self.observed = Judge(adapter, metric, observed.features, observed.targets)

    def _losses(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        device = self._train_targets.device
        index = self.sampler.draw(len(phi), generator).to(device)

        def losses(phi: Tensor, index: Tensor) -> Tensor:
            flat = index.flatten()
            features = tuple(
                part.index_select(0, flat) for part in self._train_features
            )
            outputs = self.adapter.predict_grouped(features, phi.to(device))
            return self._row_losses(outputs, self._train_targets[index]).to(phi.device)

        examples = _map_examples_per_pass(self._train_features)
        rows = len(phi) if examples is None else max(1, examples // index.shape[1])
        if rows >= len(phi):
            return losses(phi, index)
        found: Tensor = _LossesInParts.apply(phi, index, rows, losses)
        return found

    def _observe(self, phi: Tensor) -> Tensor:
        return to_cost(self.metric, self.observed.values(phi))

    def _observe_train(self, phi: Tensor, generator: torch.Generator) -> Tensor:
        count = len(self.observed.targets)
        drawn = torch.randperm(len(self._train_targets), generator=generator)[:count]
        index = drawn.to(self._train_targets.device)
        features = tuple(part.index_select(0, index) for part in self._train_features)
        targets = self._train_targets[index]
        judge = Judge(self.adapter, self.metric, features, targets)
        return to_cost(self.metric, judge.values(phi))


class Judge:
    """Evaluates a metric of an adapted network on one split.

    A task has one for its observe split; whoever compares methods has one for test.

    Args:
        adapter: frozen network theta with adapter.
        metric: what to evaluate.
        features: what the adapter encoded of N examples.
        targets: their labels, shape [N].
    """

    def __init__(
        self, adapter: Adapter, metric: Metric, features: Features, targets: Tensor
    ) -> None:
        self.adapter = adapter
        self.metric = metric
        self.features = features
        self.targets = targets

    @torch.no_grad()
    def outputs(self, phi: Tensor) -> Tensor:
        """Return the network's outputs for phi [B, d], shape [B, N, C].

        Feature maps are read from memory once for all rows, a few examples at a time.
        """
        rows, examples = max(1, len(phi)), len(self.targets)
        limit = _map_examples_per_pass(self.features)
        if limit is None:
            together, chunk = rows, max(1, EXAMPLES_PER_PASS // rows)
        else:
            together = min(rows, max(1, limit // examples))
            chunk = max(1, limit // together)
        chunks = zip(*(part.split(chunk) for part in self.features), strict=True)
        parts, predict = (
            phi.to(self.targets.device).split(together),
            self.adapter.predict,
        )
        return torch.cat(
            [torch.cat([predict(each, part) for part in parts]) for each in chunks], 1
        )

    def values(self, phi: Tensor) -> Tensor:
        """Return the metric of every row in native units, float64, [B], where phi is.

        Raises:
            MetricError: if the metric fails; the message names the row of phi.
        """
        rows = max(1, self._outputs_held() // len(self.targets))
        parts = []
        for start, part in zip(range(0, len(phi), rows), phi.split(rows), strict=True):
            try:
                parts.append(self.metric.values(self.outputs(part), self.targets))
            except MetricOptError as error:
                error.add_note(f"while evaluating rows {start} to {start + len(part)}")
                raise
        return torch.cat(parts).to(phi.device)

    def _outputs_held(self) -> int:
        maps = _map_examples_per_pass(self.features) is not None
        return MAP_OUTPUTS_HELD if maps else EXAMPLES_PER_PASS


class _LossesInParts(torch.autograd.Function):
    """Losses and gradients of a few rows at a time: activations stay in the cache.

    Each row has a loss of its own, so that its gradient is known before the next is
    begun, and the graph of all rows is never held.
    """

    @staticmethod
    def forward(
        ctx: Any,
        phi: Tensor,
        index: Tensor,
        rows: int,
        losses: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        values, gradients = [], []
        for part, drawn in zip(phi.split(rows), index.split(rows), strict=True):
            with torch.enable_grad():
                part = part.detach().requires_grad_()
                found = losses(part, drawn)
                gradients += torch.autograd.grad(found.sum(), part)
            values.append(found.detach())
        ctx.save_for_backward(torch.cat(gradients))
        return torch.cat(values)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradients,) = ctx.saved_tensors
        return upstream[:, None] * gradients, None, None, None


def _map_examples_per_pass(features: Features) -> int | None:
    """Return how many examples with feature maps fit the cache; None without maps.

    A GPU has no such cache, and small passes would leave it idle.
    """
    numbers = sum(part.shape[1:].numel() for part in features if part.ndim > 2)
    if not numbers or features[0].device.type != "cpu":
        return None
    return min(EXAMPLES_PER_PASS, max(1, MAP_NUMBERS_PER_PASS // numbers))


def encoded(adapter: Adapter, split: Split | EncodedSplit) -> EncodedSplit:
    """Return a split as the adapter encodes it; what is encoded already stays."""
    if isinstance(split, EncodedSplit):
        return split
    return EncodedSplit(encode(adapter, split.inputs), split.targets)


@torch.no_grad()
def encode(adapter: Adapter, inputs: Tensor) -> Features:
    """Return the adapter's cached features of all inputs, computed in chunks."""
    numbers = max(1, inputs[0].numel())
    chunk = max(1, min(EXAMPLES_ENCODED, NUMBERS_ENCODED // numbers))
    parts = [adapter.encode(part) for part in inputs.split(chunk)]
    return tuple(torch.cat(tensors) for tensors in zip(*parts, strict=True))


def batched_loss(loss: Loss) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss of each row: outputs [B, n, C], targets [B, n] -> [B].

    A mean-reduced torch loss is taken once without reduction, which is many times
    faster than a call per row; any other loss is called row by row.
    """
    # A subclass may mean something else; class weights enter the divisor of the mean.
    plain = type(loss) in (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss)
    if plain and loss.reduction == "mean" and loss.weight is None:  # type: ignore[attr-defined]
        return _elementwise(loss)  # type: ignore[arg-type]
    row_losses = getattr(loss, "row_losses", None)
    if row_losses is not None:
        found: Callable[[Tensor, Tensor], Tensor] = row_losses
        return found

    def one_by_one(outputs: Tensor, targets: Tensor) -> Tensor:
        pairs = zip(outputs, targets, strict=True)
        return torch.stack([loss(output, target) for output, target in pairs])

    return one_by_one


def _elementwise(
    loss: nn.CrossEntropyLoss | nn.BCEWithLogitsLoss,
) -> Callable[[Tensor, Tensor], Tensor]:
    per_example = copy.copy(loss)
    per_example.reduction = "none"

    def row_means(outputs: Tensor, targets: Tensor) -> Tensor:
        flat_outputs, flat_targets = outputs.flatten(0, 1), targets.flatten(0, 1)
        if isinstance(per_example, nn.BCEWithLogitsLoss):
            # The labels of single logits may be [n] for [n, 1], and integers.
            flat_targets = flat_targets.reshape(flat_outputs.shape).to(flat_outputs)
        values: Tensor = per_example(flat_outputs, flat_targets)
        counted = torch.ones_like(values, dtype=torch.bool)
        labels = not flat_targets.is_floating_point()
        if labels and isinstance(per_example, nn.CrossEntropyLoss):
            counted = flat_targets.ne(per_example.ignore_index)
        rows = len(outputs)
        return values.view(rows, -1).sum(1) / counted.view(rows, -1).sum(1)

    return row_means
