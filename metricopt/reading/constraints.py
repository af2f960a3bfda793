"""A metric with bounds on others, from what a user gives."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from types import MethodType
from typing import Any

from metricopt.errors import ConfigError, MetricError
from metricopt.metrics.base import Metric
from metricopt.metrics.constrained import (
    CONFIDENCE,
    Bound,
    BoundedMetric,
    ConstrainedMetric,
)
from metricopt.reading.callables import CallableMetric, make_metric
from metricopt.reading.outputs import Outputs, Targets
from metricopt.reading.scorers import is_scorer


@dataclass
class _Answer:
    """The last dictionary that a function returned, or what it raised instead.

    Metrics of several keys ask about the same outputs one after another, and share it.
    One that asks about the same outputs again has the function called anew.
    """

    outputs: object = None
    asked: set[str] = field(default_factory=set)
    value: object = None
    error: Exception | None = None

    def known(self, outputs: Outputs, key: str) -> bool:
        """Return whether it serves a key, which it then counts as asked for."""
        if self.outputs is not outputs or key in self.asked:
            return False
        self.asked.add(key)
        return True


class KeyedMetric(CallableMetric):
    """One number of the dictionary that a function returns.

    Args:
        whole: the function as a metric.
        key: key of the number.
        answer: shared by the metrics of all keys of the function.
        higher_is_better: direction of the number.
        low: least possible value; None for no promise.
        high: greatest possible value; None for no promise.
    """

    def __init__(
        self,
        whole: CallableMetric,
        key: str,
        answer: _Answer,
        *,
        higher_is_better: bool,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        super().__init__(
            whole._function, key, higher_is_better=higher_is_better, low=low, high=high
        )
        self._answer, self._owner, self.source = answer, whole.name, whole.source
        self.takes = whole.takes

    def _value(self, outputs: Outputs, targets: Targets) -> object:
        answer = self._answer
        if not answer.known(outputs, self.name):
            answer.outputs, answer.asked = outputs, {self.name}
            answer.value, answer.error = None, None
            try:
                answer.value = super()._value(outputs, targets)
            except Exception as error:  # noqa: BLE001 - raised below, for every key
                answer.error = error
        if answer.error is not None:
            raise answer.error
        return self._number_in(answer.value)

    def _number_in(self, found: Any) -> object:
        if isinstance(found, Mapping) and self.name in found:
            return found[self.name]
        got = (
            f"the keys {', '.join(map(repr, found))}"
            if isinstance(found, Mapping)
            else f"a {type(found).__name__}"
        )
        raise MetricError(
            f"metric {self._owner!r} must return a dictionary with the key "
            f"{self.name!r}, got {got}"
        )


def read_metric(
    spec: object,
    constraints: Sequence[Bound] = (),
    *,
    objective: str | None = None,
    confidence: float = CONFIDENCE,
    **declared: Any,
) -> Metric:
    """Return the metric to improve, with its bounds if there are any.

    Args:
        spec: whatever `make_metric` accepts; a function that returns a dictionary of
            numbers if `objective` is given.
        constraints: bounds on other metrics. A name is a key of that dictionary, or
            else a metric's.
        objective: key of the number to improve.
        confidence: probability with which all bounds are to be met on other data.
        **declared: direction and range of the metric to improve; see `make_metric`.

    Raises:
        ConfigError: if one of them is no metric, it is not clear whether a name is a
            key, or a bound is outside of the range of its metric.
    """
    if objective is None:
        _check_names(spec, constraints)
        metric, keys = make_metric(spec, **declared), None
    else:
        keys = _Keys(spec, objective)
        metric = keys.metric(objective, **declared)
    if not constraints:
        return metric
    bounds = [_bounded(bound, keys) for bound in constraints]
    _, *others = _told_apart([metric, *(bound.metric for bound in bounds)])
    pairs = zip(bounds, others, strict=True)
    bounds = [replace(bound, metric=other) for bound, other in pairs]
    return ConstrainedMetric(metric, bounds, confidence)


def _told_apart(metrics: Sequence[Metric]) -> list[Metric]:
    """Return metrics of which no two have one name, unless they are the same.

    Parts of one function, such as partials, are called alike, and results find bounds
    by the names of their metrics. Keys keep theirs, which dictionaries have.
    """
    taken: dict[str, Metric] = {}
    found: dict[int, Metric] = {}
    places = range(len(metrics))
    for place in sorted(places, key=lambda at: type(metrics[at]) is not KeyedMetric):
        metric, name, number = metrics[place], metrics[place].name, 1
        while not _is_same(taken.setdefault(name, metric), metric):
            number += 1
            name = f"{metric.name} ({number})"
        if name != metric.name:
            metric = copy(metric)
            vars(metric)["name"] = name
        found[place] = metric
    return [found[place] for place in places]


def _is_same(first: Metric, second: Metric) -> bool:
    """Return whether two metrics are one, as far as that can be seen."""
    if isinstance(first, CallableMetric) and isinstance(second, CallableMetric):
        return _is_one(first.source, second.source)
    same = type(first) is type(second) and _equal(vars(first), vars(second))
    return first is second or same


def _is_one(first: Any, second: Any) -> bool:
    """Return whether two functions are one, or the same part or scorer of one."""
    if isinstance(first, partial) and isinstance(second, partial):
        given = ((each.args, each.keywords) for each in (first, second))
        return _is_one(first.func, second.func) and _equal(*given)
    if is_scorer(first) and is_scorer(second):
        made = ((e._sign, e._kwargs, e._response_method) for e in (first, second))
        return first._score_func is second._score_func and _equal(*made)
    return first == second if isinstance(first, MethodType) else first is second


def _equal(first: object, second: object) -> bool:
    try:
        return bool(first == second)
    except Exception:  # noqa: BLE001 - arrays and others have no one answer
        return False


class _Keys:
    """A function that returns a dictionary of numbers."""

    def __init__(self, spec: object, objective: str) -> None:
        # A direction, which is not known of the dictionary, says nothing here.
        whole = spec
        if callable(spec) and not isinstance(spec, Metric):
            whole = make_metric(spec, higher_is_better=True)
        if type(whole) is not CallableMetric:
            raise ConfigError(
                f"objective={objective!r} names a key of the dictionary that a "
                "function of your own returns, and this metric is no such function: "
                "leave it out"
            )
        self._whole, self._answer = whole, _Answer()
        self._direction = spec.higher_is_better if isinstance(spec, Metric) else None

    def metric(
        self, key: str, *, higher_is_better: bool | None = None, **range_: Any
    ) -> KeyedMetric:
        """Return the number of a key as a metric."""
        if higher_is_better is None:
            higher_is_better = self._direction
        if higher_is_better is None:
            raise ConfigError(
                f"metric {key!r} does not say which direction is better: pass "
                "higher_is_better=True or higher_is_better=False"
            )
        return KeyedMetric(
            self._whole, key, self._answer, higher_is_better=higher_is_better, **range_
        )


def _check_names(spec: object, constraints: Sequence[Bound]) -> None:
    """Refuse names of bounded metrics that may be keys of what a function returns.

    Raises:
        ConfigError: if the metric is a function and there are such names.
    """
    if isinstance(spec, str) or not constraints:
        return
    own = isinstance(spec, Metric)
    metric = spec if own else make_metric(spec, higher_is_better=True)
    if type(metric) is not CallableMetric:
        return
    for bound in constraints:
        if isinstance(bound.metric, str):
            raise ConfigError(
                f"{bound.metric!r} may be a metric or a key of what the metric "
                "function returns: pass objective=, the key of the number to improve, "
                f"if it returns a dictionary, else make_metric({bound.metric!r})"
            )


def _bounded(bound: Bound, keys: _Keys | None) -> BoundedMetric:
    """Return a bound with its metric."""
    spec, least = bound.metric, bound.sense == "at least"
    if keys is not None and isinstance(spec, str):
        return BoundedMetric(
            keys.metric(spec, higher_is_better=least), bound.sense, float(bound.value)
        )
    # The side of the bound is the direction of a function that does not say it.
    known = isinstance(spec, str | Metric)
    metric = make_metric(spec) if known else make_metric(spec, higher_is_better=least)
    bound.check(metric.name, metric.limits)
    return BoundedMetric(metric, bound.sense, float(bound.value))
