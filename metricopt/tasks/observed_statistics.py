"""Statistics of an adapted network on one split, by phi; they cost no query."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.outputs import Outputs
from metricopt.statistics.contract import Groups, Statistics
from metricopt.tasks import passes
from metricopt.tasks.judge import Judge


class ObservedStatistics:
    """Statistics of the N examples a judge holds, for many phi at once.

    Args:
        judge: adapter and examples.
        kind: which statistics.

    Raises:
        ConfigError: if targets are no labels [N].
    """

    def __init__(self, judge: Judge, kind: Statistics) -> None:
        targets = judge.targets
        if not isinstance(targets, Tensor) or targets.ndim != 1:
            raise ConfigError("statistics need one label for each example")
        self.kind = kind
        self._judge = judge
        self._targets = targets

    def __len__(self) -> int:
        return len(self._targets)

    @property
    def targets(self) -> Tensor:
        """Labels of the N examples, for stratified folds."""
        return self._targets.cpu()

    @torch.no_grad()
    def exact(self, phi: Tensor, weights: Tensor | None = None) -> Groups:
        """Return the exact statistics of every row.

        Args:
            phi: adapter parameters, shape [B, d].
            weights: of the examples in each row, shape [B, N]; None for all alike.

        Returns:
            Statistics by group, float64, each [B, q], where phi is.
        """
        split = self._judge.split
        rows = passes.rows_held(len(split), split.first, kept=split.kept)
        found: list[Groups] = []
        for start in range(0, len(phi), rows):
            part = slice(start, start + rows)
            chosen = None if weights is None else weights[part]
            found.append(self.of_outputs(self.outputs(phi[part]), chosen))
        return {
            name: torch.cat([groups[name] for groups in found]).to(phi.device)
            for name in found[0]
        }

    @torch.no_grad()
    def held_out(self, phi: Tensor, folds: Tensor) -> Tensor:
        """Return the outputs of every example under the row that left its fold out.

        Args:
            phi: one row for each of F folds, shape [F, d].
            folds: the fold of every example, in [0, F), shape [N].

        Returns:
            Outputs, shape [1, N, C], in the order of the examples.
        """
        split, adapter = self._judge.split, self._judge.adapter
        found, order = [], []
        for fold, row in enumerate(phi.split(1)):
            places = (folds == fold).nonzero().flatten()
            judge = Judge(adapter, split.part(places))
            found.append(_one_tensor(judge.outputs(row)))
            order.append(places)
        pooled = torch.cat(found, 1)
        return pooled[:, torch.cat(order).argsort().to(pooled.device)]

    def outputs(self, phi: Tensor) -> Tensor:
        """Return the outputs of every row, shape [B, N, C]."""
        return _one_tensor(self._judge.outputs(phi))

    def of_outputs(self, outputs: Tensor, weights: Tensor | None = None) -> Groups:
        """Return the exact statistics of outputs [B, N, C]; see `exact`."""
        return self.kind.exact(outputs, self._targets, weights)

    def smooth(
        self, phi: Tensor, rows: Tensor, weights: Tensor | None = None
    ) -> Groups:
        """Return smooth statistics of every row of phi on some examples.

        Args:
            phi: adapter parameters, shape [B, d].
            rows: places of n examples in [0, N).
            weights: of these examples in each row, shape [B, n]; None for all alike.

        Returns:
            Statistics by group, each [B, q], differentiable in phi.
        """
        split = self._judge.split
        features = split.batch(rows)
        outputs = self._judge.adapter.predict(features, phi.to(split.device))
        targets = self._targets[rows.to(self._targets.device)]
        groups = self.kind.smooth(_one_tensor(outputs), targets, weights)
        return {name: values.to(phi.device) for name, values in groups.items()}


def _one_tensor(outputs: Outputs) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise ConfigError("statistics need outputs in one tensor, got a tuple")
    return outputs
