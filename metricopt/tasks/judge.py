"""The judge: outputs and metrics of an adapted network, for many phi."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter
from metricopt.errors import ConfigError, MetricOptError
from metricopt.metrics.base import Metric, WrappedMetric
from metricopt.metrics.constrained import ConstrainedMetric
from metricopt.reading.callables import CallableMetric
from metricopt.reading.columns import columned
from metricopt.reading.expected import one_by_one
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Outputs, Targets, joined
from metricopt.tasks.encoding import Encoded, judging_pass, rows_held

Evaluation = Callable[[Outputs, Targets], Tensor]
"""From outputs [B, N, C] and targets to one entry for each row."""


class Judge:
    """Evaluates metrics of an adapted network on one split, as its adapter encodes it.

    A task has one for its observe split; a comparison of methods has one for test.
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
        together, chunk = judging_pass(rows, len(split), split.first)
        parts, predict = phi.to(split.device).split(together), self.adapter.predict
        return joined(
            [
                joined([predict(features, part) for part in parts], 0)
                for features in split.chunks(chunk)
            ],
            1,
        )

    def values(
        self, metric: Metric, phi: Tensor, known: Outputs | None = None
    ) -> Tensor:
        """Return a metric of every row of phi in native units, float64, shape [B].

        Raises:
            MetricError: if the metric fails; the message names the row of phi.
        """
        return self.evaluate(phi, {metric.name: metric}, known)[metric.name]

    def evaluate(
        self, phi: Tensor, metrics: Mapping[str, Metric], known: Outputs | None = None
    ) -> dict[str, Tensor]:
        """Return several metrics of every row, by name; outputs are computed once.

        Args:
            phi: adapter parameters, shape [B, d].
            metrics: by the names they are returned under.
            known: outputs of phi, if it is a single one and they are known already.

        Returns:
            Native values of every metric, float64, shape [B], where phi is.

        Raises:
            MetricError: if a metric fails; the message names the row of phi.
        """
        functions = {name: (m.values, m.columns) for name, m in metrics.items()}
        return self.called(phi, functions, known)

    def called(
        self,
        phi: Tensor,
        functions: Mapping[str, tuple[Evaluation, Collection[str]]],
        known: Outputs | None = None,
    ) -> dict[str, Tensor]:
        """Return what functions make of the outputs of every row; see `evaluate`.

        Each takes the columns of some names, and returns one entry of the first axis
        for each row of outputs [B, N, C].
        """
        found: dict[str, list[Tensor]] = {name: [] for name in functions}
        rows = rows_held(len(self.split), self.split.first, kept=self.split.kept)
        for start, part in zip(range(0, len(phi), rows), phi.split(rows), strict=True):
            try:
                outputs = self.outputs(part) if known is None else known
                for name, (function, columns) in functions.items():
                    given = columned(self.targets, self.split.columns, columns)
                    found[name].append(function(outputs, given))
            except MetricOptError as error:
                error.add_note(f"while evaluating rows {start} to {start + len(part)}")
                raise
        return {name: torch.cat(parts).to(phi.device) for name, parts in found.items()}


def bound_metric(
    metric: Metric, meaning: Meaning, columns: Collection[str] = ()
) -> Metric:
    """Return a metric of outputs in the form of methods; see `Meaning.inward`.

    A user's function gets the outputs as the network returns them, and the columns of
    these names that its parameters are named like. Metrics of other packages get what
    they expect of outputs with this meaning. A metric of class scores gets dense
    outputs as rows.

    Raises:
        ConfigError: if the metric needs a column that is not there.
    """
    if isinstance(metric, ConstrainedMetric):
        return metric.over(lambda one: bound_metric(one, meaning, columns))
    if isinstance(metric, CallableMetric):
        return metric.bound(meaning, columns)
    lacking = [name for name in metric.columns if name not in columns]
    if lacking:
        raise ConfigError(
            f"metric {metric.name!r} takes the columns {', '.join(metric.columns)}, "
            f"but observe lacks {', '.join(lacking)}: give them beside the labels, "
            "observe=(inputs, targets, {name: values})"
        )
    if meaning.is_dense and metric.reads == "scores" and metric.shape == "[N, C]":
        return DenseMetric(metric, meaning)
    return metric


class DenseMetric(WrappedMetric):
    """A metric of rows [N, C], of dense outputs [N, C, ...] with targets [N, ...]."""

    def __init__(self, metric: Metric, meaning: Meaning) -> None:
        super().__init__(metric)
        self.shape = "[N, C, ...]"
        self._meaning = meaning

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return self.metric.value(*one_by_one(self._meaning, outputs, targets))

    def _values(self, outputs: Any, targets: Any) -> Tensor:
        rows = one_by_one(self._meaning, outputs, targets, leading=2)
        return self.metric.values(*rows)
