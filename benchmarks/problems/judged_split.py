"""A split with all that choices are judged by: encoded once, all phi in one pass."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from benchmarks.problems.choices import Adapted, Choice, Shifted, Trained
from metricopt.metrics.base import Metric
from metricopt.reading.outputs import Outputs, each, joined
from metricopt.tasks.encoding import Encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge

Values = dict[str, Tensor]
"""Native values [R] of several metrics, by the label of the metric."""


class JudgedSplit:
    """A split of a pipeline, for judging.

    Args:
        pipeline: gives splits, adapter and network.
        name: `train`, `observe` or `test`.
    """

    def __init__(self, pipeline: Any, name: str) -> None:
        self._pipeline, self._name = pipeline, name

    @property
    def examples(self) -> Examples:
        """The examples as the network takes them."""
        found: Examples = self._pipeline.splits.parts[self._name]
        return found

    @cached_property
    def encoded(self) -> Encoded:
        """The examples as the adapter encodes them."""
        found: Encoded = self._pipeline.encode(self._name, self.examples)
        return found

    @property
    def judge(self) -> Judge:
        """What evaluates phi on the split."""
        return Judge(self._pipeline.adapter, self.encoded)

    @cached_property
    def outputs(self) -> Outputs:
        """Class outputs of the untouched network."""
        outputs = self.judge.outputs(torch.zeros(1, self._pipeline.adapter.size))
        row = each(lambda part: part[0], outputs)
        found: Outputs = self._pipeline.class_outputs(row)
        return found

    def evaluate(
        self, choices: Sequence[Choice], metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice."""
        adapted = [choice.phi for choice in choices if isinstance(choice, Adapted)]
        judged = iter(self._of_phi(adapted, metrics))
        return [
            next(judged)
            if isinstance(choice, Adapted)
            else self._of_outputs(choice, metrics)
            for choice in choices
        ]

    def _of_phi(
        self, rows: Sequence[Tensor], metrics: Mapping[str, Metric]
    ) -> list[Values]:
        if not rows:
            return []
        found = self.judge.evaluate(torch.cat(list(rows)), metrics)
        sizes = [len(phi) for phi in rows]
        parts = {name: values.split(sizes) for name, values in found.items()}
        return [
            {name: part[place] for name, part in parts.items()}
            for place in range(len(rows))
        ]

    def _of_outputs(
        self, choice: Shifted | Trained, metrics: Mapping[str, Metric]
    ) -> Values:
        if isinstance(choice, Shifted):
            outputs = choice.shift(self.outputs)
        else:
            at_once = self._pipeline.examples_at_once
            starts = range(0, len(self.examples), at_once)
            parts = (self.examples.batch(slice(at, at + at_once)) for at in starts)
            outputs = joined([choice.predict(part) for part in parts], 0)
        one_row = each(lambda part: part[None], outputs)
        return {
            name: metric.values(one_row, self.examples.targets)
            for name, metric in metrics.items()
        }
