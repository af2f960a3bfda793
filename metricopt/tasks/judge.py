"""The judge: outputs and metrics of an adapted network, for many phi."""

from collections.abc import Mapping

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter
from metricopt.errors import MetricOptError
from metricopt.metrics.base import Metric
from metricopt.outputs import Outputs, Targets, joined
from metricopt.tasks import passes
from metricopt.tasks.encoding import Encoded


class Judge:
    """Evaluates metrics of an adapted network on one split.

    A task has one for its observe split; a comparison of methods has one for test.

    Args:
        adapter: frozen network theta with adapter.
        split: N examples as the adapter encodes them.
    """

    def __init__(self, adapter: Adapter, split: Encoded) -> None:
        self.adapter = adapter
        self.split = split

    @property
    def targets(self) -> Targets:
        """Targets of the N examples."""
        return self.split.targets

    @torch.no_grad()
    def outputs(self, phi: Tensor) -> Outputs:
        """Return the network's outputs for phi [B, d], shape [B, N, C].

        Feature maps are read from memory once for all rows, a few examples at a time.
        """
        rows, split = max(1, len(phi)), self.split
        together, chunk = passes.judging_pass(rows, len(split), split.first)
        parts, predict = phi.to(split.device).split(together), self.adapter.predict
        return joined(
            [
                joined([predict(features, part) for part in parts], 0)
                for features in split.chunks(chunk)
            ],
            1,
        )

    def values(self, metric: Metric, phi: Tensor) -> Tensor:
        """Return a metric of every row in native units, float64, [B], where phi is.

        Raises:
            MetricError: if the metric fails; the message names the row of phi.
        """
        return self.evaluate(phi, {metric.name: metric})[metric.name]

    def evaluate(self, phi: Tensor, metrics: Mapping[str, Metric]) -> dict[str, Tensor]:
        """Return several metrics of every row, by name; outputs are computed once.

        Args:
            phi: adapter parameters, shape [B, d].
            metrics: by the names they are returned under.

        Returns:
            Native values of every metric, float64, shape [B], where phi is.

        Raises:
            MetricError: if a metric fails; the message names the row of phi.
        """
        found: dict[str, list[Tensor]] = {name: [] for name in metrics}
        rows = passes.rows_held(len(self.split), self.split.first, kept=self.split.kept)
        for start, part in zip(range(0, len(phi), rows), phi.split(rows), strict=True):
            try:
                outputs = self.outputs(part)
                for name, metric in metrics.items():
                    found[name].append(metric.values(outputs, self.targets))
            except MetricOptError as error:
                error.add_note(f"while evaluating rows {start} to {start + len(part)}")
                raise
        return {name: torch.cat(parts).to(phi.device) for name, parts in found.items()}
