"""The contract of a metric, what it is given, and the one conversion to a cost."""

import math
import numbers
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import (
    DataError,
    MetricError,
    MetricOptError,
    RangeError,
    ShapeError,
    said,
)
from metricopt.metrics.scale import Scale
from metricopt.reading.outputs import Outputs, Reads, Targets, leading, rows
from metricopt.registry import Registry


def check_labels(name: str, targets: Targets, classes: int) -> None:
    """Raise DataError unless targets are [N] integers of classes, 2 for one logit."""
    labels = check_integers(name, targets)
    low, high = (int(bound) for bound in labels.aminmax())
    if low < 0 or high >= classes:
        raise DataError(
            f"metric {name!r} needs labels in [0, {classes - 1}], "
            f"got labels from {low} to {high}"
        )


def check_integers(name: str, targets: Targets) -> Tensor:
    """Return the targets; raise DataError if they are not [N] integers."""
    if not isinstance(targets, Tensor):
        raise DataError(
            f"metric {name!r} needs integer labels of shape [N], "
            f"got a {type(targets).__name__} of {len(targets)} targets"
        )
    if targets.ndim != 1 or not is_integer(targets):
        raise DataError(
            f"metric {name!r} needs integer labels of shape [N], "
            f"got {targets.dtype} of shape {list(targets.shape)}"
        )
    return targets


def check_outputs(name: str, outputs: Tensor) -> None:
    """Raise MetricError for outputs with NaN, which would count as class 0."""
    # The maximum of a tensor with NaN is NaN; it is far cheaper than a mask.
    if outputs.numel() and bool(torch.isnan(outputs.amax())):
        raise MetricError(f"metric {name!r} was given outputs with NaN")


def is_integer(targets: Tensor) -> bool:
    """Return whether targets are whole numbers."""
    kinds = targets.is_floating_point() or targets.is_complex()
    return not kinds and targets.dtype != torch.bool


ROUNDING = 1e-6
"""How far a value may leave the range, relative to it: it is often float32."""


WIDE = 1e4
"""How many times longer than its values ask for a promised range is no scale."""
LAST_POWER = 307
"""Greatest power of ten that a scale may be long: twice as much is a number, too."""


class ValueRange:
    """The range of a metric's values: ends that are promised, or a mere scale.

    A value beyond a promised end is an error. Without a promise values are taken as
    they come, and the first one that is not at an end decides how long the scale is on
    which they are costs: 0 to 1, or as far as the next power of ten. The cost of that
    end is the same on all of them. Promised ends that are very far away are no scale:
    costs near another end would be rounded away.

    Args:
        low: least possible value; None for no promise.
        high: greatest possible value; None for no promise.
        least: low end of the scale where nothing is promised.

    Attributes:
        low: value at one end of the scale.
        high: value at the other.
    """

    def __init__(self, low: float | None, high: float | None, least: float) -> None:
        self._given = low, high, least
        self._least = -math.inf if low is None else low
        self._greatest = math.inf if high is None else high
        self.low = least if low is None else low
        self.high = 1.0 if high is None else high
        if high is None and self.low >= 1:
            self.high = self.low + 1
        if low is None and self.high <= self.low:
            self.low = self.high - 1
        self._at: float | None = None
        self._seen = False

    def afresh(self) -> Self:
        """Return the same range before any value."""
        return type(self)(*self._given)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, as far as they are promised; else those of the scale."""
        low, high, _ = self._given
        return self.low if low is None else low, self.high if high is None else high

    def take(self, value: float) -> float | None:
        """Return a value, rounded to an end; None if it breaks a promise."""
        wide = self._greatest - self._least
        slack = ROUNDING * min(wide, max(self.high - self.low, abs(value)))
        if not self._least - slack <= value <= self._greatest + slack:
            return None
        value = min(max(value, self._least), self._greatest)
        end = min(max(value, self.low), self.high)
        # Without a promise, rounding is what float32 makes of the end itself.
        if not math.isfinite(wide) and abs(value - end) <= ROUNDING * abs(end):
            value = end
        if not self._seen:
            self._rescale(value)
        return value

    def _rescale(self, value: float) -> None:
        """Let the first value that is not at an end decide how long the scale is."""
        before, low, high = self._at, self.low, self.high
        near = _power_of_ten(max(1.0, low - value, value - high))
        is_far = before is None and high - low > WIDE * near
        if value < low and is_far:
            self.low, self.high = low - near, low
        elif value > high and is_far:
            self.low, self.high = high, high + near
        elif value < low and before == low:
            self.high = low + _power_of_ten(low - value)
        elif value < low:
            self.low = high - _power_of_ten(high - value)
        elif value > high:
            self.high = low + _power_of_ten(value - low)
        else:
            self._shorten(value)
        # After two ends, another scale would change the cost of one of them.
        known = value not in (self.low, self._greatest)
        self._seen, self._at = known or before not in (None, value), value

    def _shorten(self, value: float) -> None:
        """Begin the scale at the nearest end if its other end is very far away."""
        zero = min(max(0.0, self.low), self.high)
        end = min(self.low, self.high, zero, key=lambda each: abs(value - each))
        # What was at this end before has the same cost on both scales.
        if value in (self.low, self.high) or self._at not in (None, end):
            return
        distance = abs(value - end)
        near = _power_of_ten(distance) if distance > 1 else 1.0
        if self.high - self.low > WIDE * near:
            far = end + math.copysign(near, value - end)
            self.low, self.high = min(end, far), max(end, far)


def _power_of_ten(value: float) -> float:
    """Return the least power of ten that is at least a positive value, or the last."""
    return 10.0 ** math.ceil(min(math.log10(value), LAST_POWER))


class Metric(ABC):
    """A black-box score of outputs against targets.

    Attributes:
        name: short name, as in tables.
        higher_is_better: direction of the native value.
        unit: unit of the native value ("fraction", "percent", ...).
        low: least possible native value.
        high: greatest possible native value.
        needs_two_classes: whether it is meaningless on targets of one class only.
        takes_tuples: whether it reads outputs that are a tuple of tensors.
        reads: what outputs are: scores of classes, embeddings that are compared with
            each other, or regions of a detector.
        shape: shape of the outputs it reads.
        direction_declared: whether the user declared its direction; `finetune` then
            checks the direction first.
        range_remedy: what a message adds where a value leaves the range.
        columns: names of the columns that it takes; its targets are then `Columned`.
    """

    name: str
    higher_is_better: bool
    unit: str = "fraction"
    low: float = 0.0
    high: float = 1.0
    needs_two_classes: bool = False
    takes_tuples: bool = False
    reads: Reads = "scores"
    shape: str = "[N, C]"
    direction_declared: bool = False
    range_remedy: str = ""
    columns: tuple[str, ...] = ()

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest possible native value; infinite where nobody knows."""
        return self.low, self.high

    @property
    def direction(self) -> str:
        """The better direction of the native value in words: "higher" or "lower"."""
        return "higher" if self.higher_is_better else "lower"

    def value(self, outputs: Outputs, targets: Targets) -> float:
        """Return the metric in native units, checked to be a number in range.

        Args:
            outputs: network outputs, shape [N, C]; C = 1 is one logit of the positive
                class, C > 1 are class logits. Embeddings of size C for a metric that
                reads them, a tuple of tensors [N, ...] for one that takes them.
            targets: labels, shape [N], or a sequence of N.

        Returns:
            The metric, in [`low`, `high`].

        Raises:
            ShapeError: if outputs are not [N, C] with the N of the targets.
            DataError: if there is no example, or a label is not one of the classes.
            MetricError: if the metric raises or returns anything else; the message
                names the metric and the value.
        """
        self._check_inputs(outputs, targets, batched=False)
        return self._guarded_value(outputs, targets)

    def values(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the metric of every row, [B], float64; equals `value` of each exactly.

        Outputs are [B, N, C], or a tuple of tensors [B, N, ...] for a metric that takes
        them; targets [N] are the same for every row.

        Raises:
            ShapeError: if outputs are not [B, N, C] with the N of the targets.
            DataError, MetricError: as `value`.
        """
        self._check_inputs(outputs, targets, batched=True)
        return self._values(outputs, targets)

    # A metric may narrow what these two take: most read one tensor and labels.
    @abstractmethod
    def _value(self, outputs: Any, targets: Any) -> object:
        """Compute the metric; `value` checks the result."""

    def _values(self, outputs: Any, targets: Any) -> Tensor:
        found = [self._guarded_value(row, targets) for row in rows(outputs)]
        place = leading(outputs).device
        return torch.tensor(found, dtype=torch.float64, device=place)

    def _guarded_value(self, outputs: Outputs, targets: Targets) -> float:
        try:
            raw = self._value(outputs, targets)
        except MetricOptError:
            raise
        except Exception as error:  # a user's callable may raise anything
            raise MetricError(f"metric {self.name!r} raised {said(error)}") from error
        return self._checked(raw)

    def _check_inputs(
        self, outputs: Outputs, targets: Targets, *, batched: bool
    ) -> None:
        expected = f"[B, {self.shape[1:]}" if batched else self.shape
        if isinstance(outputs, Tensor):
            axes = expected.count(",") + 1
            dense = expected.endswith("...]")
            if outputs.ndim < axes - 1 if dense else outputs.ndim != axes:
                raise ShapeError(
                    f"metric {self.name!r} needs outputs {expected}, "
                    f"got {list(outputs.shape)}"
                )
        elif not self.takes_tuples:
            raise ShapeError(
                f"metric {self.name!r} needs outputs {expected}, "
                f"got a tuple of {len(outputs)} tensors"
            )
        examples = leading(outputs).shape[1 if batched else 0]
        # A single number is no sequence of targets.
        single = isinstance(targets, Tensor) and targets.ndim < 1
        if single or len(targets) != examples:
            got = (
                f"of shape {list(targets.shape)}" if isinstance(targets, Tensor) else ""
            )
            raise ShapeError(
                f"metric {self.name!r} needs one target for each of the {examples} "
                f"outputs, got targets {got or f'for {len(targets)}'}"
            )
        if examples == 0:
            raise DataError(f"metric {self.name!r} needs at least one example, got 0")

    def _checked(self, raw: object) -> float:
        value = self._number(raw)
        if not math.isfinite(value):
            raise MetricError(f"metric {self.name!r} returned {value}")
        return self._in_range(value)

    def _in_range(self, value: float) -> float:
        """Return a finite value, rounded into the range.

        Raises:
            MetricError: if it is beyond the range by more than rounding.
        """
        slack = ROUNDING * (self.high - self.low)
        if not self.low - slack <= value <= self.high + slack:
            raise self._beyond(value, self.low, self.high)
        return min(max(value, self.low), self.high)

    def _beyond(self, value: float, low: float, high: float) -> RangeError:
        return RangeError(
            f"metric {self.name!r} returned {value:g}, outside its range "
            f"[{low:g}, {high:g}]{self.range_remedy}"
        )

    def _number(self, raw: object) -> float:
        scalar = raw
        if np.ma.is_masked(raw):
            raise MetricError(
                f"metric {self.name!r} must return a number, got a masked value"
            )
        if isinstance(raw, Tensor | np.ndarray | np.generic):
            shape = list(raw.shape)
            if math.prod(shape) != 1:
                raise MetricError(
                    f"metric {self.name!r} must return one number, "
                    f"got {type(raw).__name__} of shape {shape}"
                )
            scalar = raw.item()
        # A bool is most likely a comparison that was returned by mistake.
        if isinstance(scalar, bool) or not isinstance(scalar, numbers.Real):
            raise MetricError(
                f"metric {self.name!r} must return a number, "
                f"got {type(raw).__name__} {str(raw)[:80]!r}"
            )
        return float(scalar)


def to_cost(metric: Metric | Scale, value: Tensor) -> Tensor:
    """Convert native metric values to costs: lower is better, in [0, 1]."""
    fraction = (value - metric.low) / (metric.high - metric.low)
    return 1.0 - fraction if metric.higher_is_better else fraction


def from_cost(metric: Metric | Scale, cost: Tensor) -> Tensor:
    """Convert costs back to native metric values; the inverse of `to_cost`."""
    fraction = 1.0 - cost if metric.higher_is_better else cost
    return metric.low + fraction * (metric.high - metric.low)


METRICS: Registry[type[Metric]] = Registry("metric", "metricopt.metrics", base=Metric)


class WrappedMetric(Metric):
    """Takes over name, direction, range and inputs of the metric it wraps."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.name, self.higher_is_better = metric.name, metric.higher_is_better
        self.unit = metric.unit
        self.needs_two_classes = metric.needs_two_classes
        self.takes_tuples = metric.takes_tuples
        self.reads, self.shape = metric.reads, metric.shape
        self.direction_declared = metric.direction_declared
        self.range_remedy = metric.range_remedy
        self.columns = metric.columns

    @property
    def low(self) -> float:  # type: ignore[override]
        """Least native value of the metric, which may follow from the first one."""
        return self.metric.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """Greatest native value of the metric."""
        return self.metric.high

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest possible native value of the metric."""
        return self.metric.limits

    def _in_range(self, value: float) -> float:
        return self.metric._in_range(value)
