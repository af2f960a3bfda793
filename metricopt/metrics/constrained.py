"""An objective under bounds on other metrics, which one query observes together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor

from metricopt.errors import ConfigError, described, require_choice
from metricopt.metrics.base import ROUNDING, Metric, WrappedMetric, from_cost, to_cost
from metricopt.metrics.retrieval import meant_for_labels
from metricopt.reading.columns import apart, columned
from metricopt.reading.outputs import Outputs, Targets, leading, rows

Sense = Literal["at least", "at most"]
CONFIDENCE = 0.95
"""Probability with which all bounds are to be met on other data, by default."""

PERCENT = 100
TIE = 1e-6
FURTHER = 2
"""Most metrics of a front beside the objective."""


@dataclass(frozen=True)
class Bound:
    """A bound on a metric, as a user gives it.

    Attributes:
        metric: whatever `make_metric` accepts, or a key of the dictionary that the
            metric to improve returns.
        sense: on which side of the bound the metric has to be.
        value: the bound, in the metric's own unit.
    """

    metric: object
    sense: Sense
    value: float

    def __post_init__(self) -> None:
        require_choice("sense", self.sense, Sense)
        value: object = self.value
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ConfigError(
                f"a bound must be a finite number, got {described(value)}; write "
                f"{self._function}(metric, 0.9)"
            )

    def check(self, name: str, limits: tuple[float, float]) -> None:
        """Raise ConfigError for a bound that a metric can never be near.

        The metric has a name, and values between two limits.
        """
        low, high = limits
        value = self.value
        if low <= value <= high:
            return
        hint = ""
        if high == 1 < value <= PERCENT:
            meant = f"{self._function}({name!r}, {value / PERCENT:g})"
            hint = f": if {value:g} % is meant, write {meant}"
        elif high <= 0 < value and -value >= low:
            hint = f": its values are negated, so write at_least({name!r}, {-value:g})"
        raise ConfigError(
            f"the bound {value:g} on {name!r} is outside of its range "
            f"[{low:g}, {high:g}]{hint}"
        )

    @property
    def _function(self) -> str:
        return self.sense.replace(" ", "_")


def at_least(metric: object, value: float) -> Bound:
    """Return the bound that a metric is at least so great; see `Bound`."""
    return Bound(metric, "at least", value)


def at_most(metric: object, value: float) -> Bound:
    """Return the bound that a metric is at most so great; see `Bound`."""
    return Bound(metric, "at most", value)


@dataclass(frozen=True)
class BoundedMetric:
    """A metric with a bound on it.

    Attributes:
        metric: the metric.
        sense: on which side of the bound it has to be.
        value: the bound, in native units.
    """

    metric: Metric
    sense: Sense
    value: float

    @property
    def name(self) -> str:
        """The bound in words."""
        return f"{self.metric.name} {self.sense} {self.value:g}"

    def excess(self, values: Tensor) -> Tensor:
        """Return by how much native values exceed the bound, <= 0 where it is met.

        It is relative to the metric's scale.
        """
        over = values - self.value if self.sense == "at most" else self.value - values
        return over / (self.metric.high - self.metric.low)

    def native(self, excess: Tensor) -> Tensor:
        """Return native values; the inverse of `excess`."""
        over = excess * (self.metric.high - self.metric.low)
        return self.value + over if self.sense == "at most" else self.value - over


@dataclass(frozen=True)
class Bounds:
    """What a method knows of the bounds of its task.

    Attributes:
        names: every bound in words.
        axes: columns of `ConstrainedMetric.each` that a front is made of: the
            objective, and the first two others of different metrics.
        confidence: probability with which all are to be met on other data.
        zero: cost of an objective of 0, if nobody knows how far its values go.
    """

    names: tuple[str, ...]
    axes: tuple[int, ...]
    confidence: float = CONFIDENCE
    zero: float | None = None

    def is_enough(self, probability: float) -> bool:
        """Return whether bounds met with this probability are said to be met."""
        return probability >= self.confidence

    def price(self, cost: float, before: float) -> float:
        """Return how much a cost of the objective is above the one before.

        It is a share of the objective's range, or of the greater of its two values if
        nobody knows how far they go, so that no unit decides.
        """
        unit = 1.0
        if self.zero is not None:
            unit = max(abs(cost - self.zero), abs(before - self.zero), ROUNDING)
        return (cost - before) / unit


def met(each: Tensor) -> Tensor:
    """Return whether all bounds are met, for `ConstrainedMetric.each` [..., 1 + M]."""
    return (each[..., 1:] <= ROUNDING).all(-1)


def constrained_cost(each: Tensor) -> Tensor:
    """Return one cost in [0, 1] of `ConstrainedMetric.each`, [..., 1 + M] to [...].

    Whatever meets all bounds is better than what does not: it costs half of what its
    objective does. What does not meet them costs 1/2 or more, by their total excess.

    Source: the comparison of feasibility first, Deb, Computer Methods in Applied
    Mechanics and Engineering 186, 2000.
    """
    if each.shape[-1] == 1:
        return each[..., 0]
    objective = each[..., 0].clamp_max(1)
    excess = each[..., 1:].clamp_min(0).mean(-1).clamp_max(1)
    # Of two with the same excess, the better objective leads on.
    beyond = 0.5 + (excess + TIE * objective.clamp_min(0)) / (2 + 2 * TIE)
    return torch.where(met(each), objective / 2, beyond)


class ConstrainedMetric(Metric):
    """An objective and bounds as one metric, whose value is `constrained_cost`.

    Args:
        objective: the metric to improve.
        bounds: bounds on others, at least one.
        confidence: probability with which all are to be met on other data.

    Raises:
        ConfigError: if they do not all read the same kind of outputs.
    """

    higher_is_better = False
    takes_tuples = True
    shape = "[N, C, ...]"

    def __init__(
        self,
        objective: Metric,
        bounds: Sequence[BoundedMetric],
        confidence: float = CONFIDENCE,
    ) -> None:
        self.objective, self.bounds = objective, tuple(bounds)
        self.confidence = confidence
        self.name, self.reads = objective.name, objective.reads
        self.direction_declared = objective.direction_declared
        names = (name for metric in self.metrics for name in metric.columns)
        self.columns = tuple(dict.fromkeys(names))
        self.needs_two_classes = any(m.needs_two_classes for m in self.metrics)
        for metric in self.metrics:
            if metric.reads != self.reads:
                remedy = meant_for_labels(metric) or meant_for_labels(objective)
                raise ConfigError(
                    f"metric {metric.name!r} reads {metric.reads}, but "
                    f"{objective.name!r} reads {self.reads}: "
                    f"{remedy or 'bound metrics that read the same outputs'}"
                )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The objective, then the bounded metrics."""
        return self.objective, *(bound.metric for bound in self.bounds)

    @property
    def known(self) -> Bounds:
        """What a method may know of the bounds."""
        names = [metric.name for metric in self.metrics]
        different = [names.index(name) for name in dict.fromkeys(names)]
        bounds = tuple(bound.name for bound in self.bounds)
        axes = tuple(different[: 1 + FURTHER])
        zero = None
        if not all(map(math.isfinite, self.objective.limits)):
            zero = to_cost(self.objective, torch.zeros(())).item()
        return Bounds(bounds, axes, self.confidence, zero)

    def over(self, wrap: Callable[[Metric], Metric]) -> "ConstrainedMetric":
        """Return the same with every metric wrapped."""
        bounds = [replace(bound, metric=wrap(bound.metric)) for bound in self.bounds]
        return ConstrainedMetric(wrap(self.objective), bounds, self.confidence)

    def each(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the objective's cost, then every bound's excess, [B, 1 + M], float64.

        Outputs are [B, N, C, ...]; see `Metric.values`, and for what is raised.
        """
        found = self._native(outputs, targets)
        excess = [
            bound.excess(values)
            for bound, values in zip(self.bounds, found[1:], strict=True)
        ]
        return torch.stack([to_cost(self.objective, found[0]), *excess], -1)

    def native(self, each: Tensor) -> Tensor:
        """Return native values of `each` [..., 1 + M]."""
        values = [
            bound.native(excess)
            for bound, excess in zip(self.bounds, each[..., 1:].unbind(-1), strict=True)
        ]
        return torch.stack([from_cost(self.objective, each[..., 0]), *values], -1)

    def _native(self, outputs: Outputs, targets: Targets) -> list[Tensor]:
        """Return native values [B] of every metric."""
        if not any(map(is_by_row, self.metrics)):
            return [m.values(outputs, _own(m, targets)) for m in self.metrics]
        # Row by row: metrics that share a function are asked about one row together.
        given = [(m, _own(m, targets)) for m in self.metrics]
        found = [[m.value(row, own) for m, own in given] for row in rows(outputs)]
        place = leading(outputs).device
        return list(torch.tensor(found, dtype=torch.float64, device=place).T)

    def _value(self, outputs: Any, targets: Any) -> object:
        found = [m.value(outputs, _own(m, targets)) for m in self.metrics]
        objective, *others = (torch.tensor(v, dtype=torch.float64) for v in found)
        excess = [b.excess(v) for b, v in zip(self.bounds, others, strict=True)]
        each = torch.stack([to_cost(self.objective, objective), *excess])
        return constrained_cost(each).item()

    def _values(self, outputs: Any, targets: Any) -> Tensor:
        return constrained_cost(self.each(outputs, targets))


def _own(metric: Metric, targets: Targets) -> Targets:
    """Return targets with those columns beside them that a metric takes."""
    return columned(*apart(targets), metric.columns)


def is_by_row(metric: Metric) -> bool:
    """Return whether a metric evaluates one row of outputs after another."""
    if isinstance(metric, ConstrainedMetric):
        return any(map(is_by_row, metric.metrics))
    while isinstance(metric, WrappedMetric):
        metric = metric.metric
    return type(metric)._values is Metric._values


def metrics_of(metric: Metric) -> tuple[Metric, ...]:
    """Return a metric, or all metrics of one with bounds, the objective first."""
    return metric.metrics if isinstance(metric, ConstrainedMetric) else (metric,)


def over_each(metric: Metric, wrap: Callable[[Metric], Metric]) -> Metric:
    """Return a metric wrapped, or one with bounds with all its metrics wrapped."""
    return metric.over(wrap) if isinstance(metric, ConstrainedMetric) else wrap(metric)
