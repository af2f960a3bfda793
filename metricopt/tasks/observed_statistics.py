"""Statistics of an adapted network on one split, by phi; they cost no query."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter, Features
from metricopt.adapters.offsets_alone import OffsetsAlone
from metricopt.errors import ConfigError
from metricopt.reading.outputs import Outputs, joined
from metricopt.statistics.contract import Groups, Statistics
from metricopt.tasks.encoding import EncodedSplit, map_examples_per_pass, rows_held
from metricopt.tasks.judge import Judge


class ObservedStatistics:
    """Statistics of one kind of the N examples a judge holds, for many phi at once.

    Attributes:
        kind: the kind of statistics.
        clusters: the cluster of every example, [N]; None if each stands for itself.

    Raises:
        ConfigError: if targets are no tensor.
    """

    def __init__(
        self, judge: Judge, kind: Statistics, clusters: Tensor | None = None
    ) -> None:
        targets = judge.targets
        if not isinstance(targets, Tensor):
            raise ConfigError("statistics need targets in one tensor, got a sequence")
        self.kind = kind
        self.clusters = clusters
        self._judge = judge
        self._targets = targets

    def __len__(self) -> int:
        return len(self._targets)

    @property
    def targets(self) -> Tensor:
        """Targets of the N examples, where phi is."""
        return self._targets.cpu()

    @property
    def size(self) -> int:
        """Number d of adapter parameters."""
        return self._judge.adapter.size

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the parts of the adapter, by name."""
        return self._judge.adapter.parts

    @cached_property
    def columns(self) -> int:
        """Number of outputs C."""
        one = self._judge.split.part(torch.zeros(1, dtype=torch.long))
        judge = Judge(self._judge.adapter, one)
        return _readable(judge.outputs(torch.zeros(1, self.size))).shape[2]

    def of_kind(self, kind: Statistics) -> "ObservedStatistics":
        """Return statistics of another kind, of the same outputs."""
        return ObservedStatistics(self._judge, kind, self.clusters)

    def of_offsets(self) -> "ObservedStatistics":
        """Return statistics by output offsets alone, and by scales if phi has them.

        The network need not run.
        """
        outputs = self.outputs(torch.zeros(1, self.size))[0]
        scaled, standard = "scales" in self.parts, self._judge.adapter.standard
        adapter = OffsetsAlone(outputs.shape[1], scaled=scaled, standard=standard)
        known = EncodedSplit((outputs,), self._targets)
        return ObservedStatistics(Judge(adapter, known), self.kind, self.clusters)

    @torch.no_grad()
    def exact(self, phi: Tensor, weights: Tensor | None = None) -> Groups:
        """Return the exact statistics of every row of phi [B, d] by group, [B, q] each.

        They are float64. Weights of the examples in each row are [B, N]; None weighs
        all alike.
        """
        split = self._judge.split
        rows = rows_held(len(split), split.first, kept=split.kept)
        found: list[Groups] = []
        for start in range(0, len(phi), rows):
            part = slice(start, start + rows)
            chosen = None if weights is None else weights[part]
            found.append(self.of_outputs(self.outputs(phi[part]), chosen))
        return {
            name: torch.cat([groups[name] for groups in found]).to(phi.device)
            for name in found[0]
        }

    @property
    def compares(self) -> bool:
        """Whether examples are compared with each other; see `Statistics.compares`."""
        return self.kind.compares

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return places of about `count` examples for smooth statistics."""
        return self.kind.draw(self.targets, count, generator)

    def views(self, phi: Tensor) -> Tensor:
        """Return the views of every row, shape [B, N, V]; see `Statistics.views`."""
        return self.kind.views(self.outputs(phi), self._targets)

    @torch.no_grad()
    def held_out(self, phi: Tensor, folds: Tensor) -> Tensor:
        """Return the views of every example under the row that left its fold out.

        Args:
            phi: one row for each of F folds, shape [F, d].
            folds: the fold of every example, in [0, F), shape [N].

        Returns:
            Views, shape [1, N, V]. An example that is compared with others has all of
            them as its gallery.
        """
        if self.compares:
            every = torch.cat([self.views(row) for row in phi.split(1)])
            return every[folds, torch.arange(len(folds))][None]
        split, adapter = self._judge.split, self._judge.adapter
        found, order = [], []
        for fold, row in enumerate(phi.split(1)):
            places = (folds == fold).nonzero().flatten()
            judge = Judge(adapter, split.part(places))
            found.append(_readable(judge.outputs(row)))
            order.append(places)
        pooled = torch.cat(found, 1)
        return pooled[:, torch.cat(order).argsort().to(pooled.device)]

    def outputs(self, phi: Tensor) -> Tensor:
        """Return the outputs of every row, shape [B, N, C]."""
        return _readable(self._judge.outputs(phi))

    def of_outputs(self, outputs: Tensor, weights: Tensor | None = None) -> Groups:
        """Return the exact statistics of outputs [B, N, C]; see `exact`."""
        return _where_phi_is(self.kind.exact(outputs, self._targets, weights))

    def pooled(self, views: Tensor, weights: Tensor, folds: Tensor) -> Groups:
        """Return the exact statistics of views by a network for each fold.

        See `Statistics.pooled`.
        """
        found = self.kind.pooled(views, self._targets, weights, folds)
        return _where_phi_is(found)

    def smooth(
        self, phi: Tensor, rows: Tensor, weights: Tensor | None = None
    ) -> Groups:
        """Return smooth statistics of every row of phi [B, d]; see `smooth_of`."""
        return self.smooth_of(self.differentiable(phi, rows), rows, weights)

    def differentiable(self, phi: Tensor, rows: Tensor) -> Tensor:
        """Return outputs [B, n, C] of every row on some examples, with gradient."""
        split = self._judge.split
        outputs = outputs_in_parts(
            self._judge.adapter, split.batch(rows), phi.to(split.device)
        )
        return _readable(outputs)

    def smooth_of(
        self, outputs: Tensor, rows: Tensor, weights: Tensor | None = None
    ) -> Groups:
        """Return smooth statistics of outputs [B, n, C] of the examples at places [n].

        Weights of these examples in each row are [B, n]; None weighs all alike.
        """
        targets = self._targets[rows.to(self._targets.device)]
        kind = self.kind.at(rows.cpu())
        return _where_phi_is(kind.smooth(outputs, targets, weights))


def _where_phi_is(groups: Groups) -> Groups:
    """Return groups on the CPU, where value functions and phi are."""
    return {name: values.cpu() for name, values in groups.items()}


BEYOND = 20.0
"""How far beyond all others an infinite output is taken to be: e^20 to 1 as odds."""


def _readable(outputs: Outputs) -> Tensor:
    """Return outputs as numbers that statistics can be made of, shape [B, N, C].

    Numbers of half precision have no log odds near 0 and 1. An infinite logit is that
    of a class that is masked.
    """
    if not isinstance(outputs, Tensor):
        raise ConfigError("statistics need outputs in one tensor, got a tuple")
    if outputs.dtype in (torch.float16, torch.bfloat16):
        outputs = outputs.float()
    finite = outputs.detach().isfinite()
    if finite.all() or not finite.any():
        return outputs
    low, high = outputs.detach()[finite].aminmax()
    return outputs.clamp(low - BEYOND, high + BEYOND)


def outputs_in_parts(adapter: Adapter, features: Features, phi: Tensor) -> Outputs:
    """Return the outputs of every phi [B, d] on N examples; see `Adapter.predict`.

    With feature maps, each part runs once more backward, which is several times faster
    than maps that leave the cache.
    """
    limit, count = map_examples_per_pass(features), len(features[0])
    examples = count if limit is None else max(1, limit // len(phi))
    if examples >= count:
        return adapter.predict(features, phi)
    found: Tensor = _InParts.apply(phi, adapter, features, examples)
    return found


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, phi: Tensor, adapter: Adapter, features: Features, examples: int
    ) -> Tensor:
        ctx.save_for_backward(phi)
        ctx.parts = list(zip(*(part.split(examples) for part in features), strict=True))
        ctx.predict = adapter.predict
        found = joined([adapter.predict(part, phi) for part in ctx.parts], 1)
        assert isinstance(found, Tensor)
        return found

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (phi,) = ctx.saved_tensors
        total = torch.zeros_like(phi)
        start = 0
        for part in ctx.parts:
            stop = start + len(part[0])
            with torch.enable_grad():
                moved = phi.detach().requires_grad_()
                outputs = ctx.predict(part, moved)
                total += torch.autograd.grad(outputs, moved, upstream[:, start:stop])[0]
            start = stop
        return total, None, None, None
