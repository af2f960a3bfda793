"""What a result says of bounds: what became of each, and what else can be had."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import torch
from torch import Tensor

from metricopt.metrics.base import Metric
from metricopt.metrics.constrained import (
    ConstrainedMetric,
    Sense,
    constrained_cost,
    met,
)


@dataclass(frozen=True)
class BoundReport:
    """What became of a bound on a metric.

    Attributes:
        metric: name of the metric.
        sense: "at least" or "at most".
        value: the bound, native units.
        before: metric of the untouched network on observe, native units.
        after: metric of phi on observe, native units.
        probability: how probably phi meets the bound on other data; None
            where nothing is known of that.
    """

    metric: str
    sense: Sense
    value: float
    before: float
    after: float
    probability: float | None

    @property
    def name(self) -> str:
        """The bound in words, such as `precision at least 0.9`."""
        return f"{self.metric} {self.sense} {self.value:g}"

    def describe(self) -> str:
        """Return a line for a summary."""
        line = f"{self.name}: {self.before:.4g} -> {self.after:.4g} on observe"
        if self.probability is None:
            return f"{line}; nothing shows whether it is met on other data."
        return f"{line}; met on other data with probability {self.probability:.2f}."


@dataclass(frozen=True)
class Front:
    """A Pareto front: phi of which none is better than another in all metrics.

    Attributes:
        values: predicted value of every metric on observe, the objective first, shape
            [F, M], the best objective first.
        elsewhere: the same on examples that chose nothing, by cross-fitting.
        phi: adapter parameters, shape [F, d].
        names: names of the metrics.
    """

    values: Tensor
    elsewhere: Tensor
    phi: Tensor
    names: tuple[str, ...] = ()


def reports(
    metric: Metric, before: Tensor, after: Tensor, chances: Sequence[float] = ()
) -> tuple[BoundReport, ...]:
    """Return what became of every bound of a metric; empty if it has none.

    Args:
        metric: a metric, which may have bounds.
        before: what was observed of phi = 0, shape [1 + M]; see `Task.observe_each`.
        after: what was observed of phi, shape [1 + M].
        chances: how probably each bound is met elsewhere; empty if that is not known.
    """
    if not isinstance(metric, ConstrainedMetric):
        return ()
    values = metric.native(torch.stack([before, after]))[:, 1:].T.tolist()
    known = chances or repeat(None, len(values))
    return tuple(
        BoundReport(b.metric.name, b.sense, b.value, untouched, moved, chance)
        for b, (untouched, moved), chance in zip(
            metric.bounds, values, known, strict=True
        )
    )


def is_worse(before: Tensor, after: Tensor, *, judged: bool) -> bool:
    """Return whether what was observed of phi, [1 + M], is worse than phi = 0.

    If it was `judged` how probably bounds are met, some of the objective may be given
    up for them: then what counts is that they are still met.
    """
    if judged:
        return bool(met(before) and not met(after))
    return bool(constrained_cost(after) > constrained_cost(before))


def native(metric: Metric, front: Front | None) -> Front | None:
    """Return a front in native units, with the names of its metrics."""
    if front is None or not isinstance(metric, ConstrainedMetric):
        return None
    axes = list(metric.known.axes)
    every = front.values.new_zeros(2, len(front.phi), 1 + len(metric.bounds))
    every[..., axes] = torch.stack([front.values, front.elsewhere])
    values, elsewhere = metric.native(every)[..., axes]
    names = tuple(metric.metrics[axis].name for axis in axes)
    return replace(front, names=names, values=values, elsewhere=elsewhere)
