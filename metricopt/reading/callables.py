"""User-defined metrics: any callable, and metrics of other packages."""

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS, Metric
from metricopt.reading.expected import probabilities
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.other_packages import (
    from_accumulator,
    from_sklearn,
    from_torchmetrics,
    is_accumulator,
    is_sklearn,
    is_torchmetrics,
)
from metricopt.reading.outputs import Outputs, Targets, each

MetricFunction = Callable[[Any, Any], object]
"""From outputs [N, C], or whatever the network returns, and N targets to a number."""


@dataclass(frozen=True)
class Declaration:
    """What a user declares about a metric; None leaves it to the metric.

    Attributes:
        higher_is_better: direction of the native value.
        low: least possible native value.
        high: greatest possible native value.
        name: short name, as in tables.
    """

    higher_is_better: bool | None = None
    low: float | None = None
    high: float | None = None
    name: str | None = None


class CallableMetric(Metric):
    """A black-box function of outputs and targets, with what is declared about it.

    The function gets outputs as the network returns them, and copies: nobody else sees
    what it changes in place.

    Args:
        function: from outputs [N, C] and targets [N] to a number in [`low`, `high`].
        name: short name, as in tables.
        higher_is_better: direction of the native value.
        low: least possible native value.
        high: greatest possible native value.

    Raises:
        ConfigError: if `low` and `high` are not finite with low < high.
    """

    direction_declared = True
    takes_tuples = True
    shape = "[N, C, ...]"
    range_remedy = ": declare its range by low and high"

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        *,
        higher_is_better: bool,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigError(
                f"metric {name!r} needs a finite range low < high, "
                f"got low={low}, high={high}"
            )
        self._function = function
        self._meaning: Meaning | None = None
        self.name = name
        self.higher_is_better = higher_is_better
        self.low = low
        self.high = high

    def bound(self, meaning: Meaning) -> Self:
        """Return the metric for outputs in the form of methods; see `Meaning`."""
        metric = copy.copy(self)
        metric._meaning = meaning
        return metric

    def _value(self, outputs: Outputs, targets: Targets) -> object:
        own = each(lambda part: part.detach().clone(), outputs)
        given = targets.clone() if isinstance(targets, Tensor) else _copied(targets)
        return self._called(own, given)

    def _called(self, outputs: Outputs, targets: Targets) -> object:
        meaning = self._meaning or PLAIN
        return self._function(
            meaning.outward(outputs), meaning.outward_targets(targets)
        )


class ForeignMetric(CallableMetric):
    """A metric of another package, which gets what it expects of the outputs.

    The function takes the meaning of outputs first; see `reading.other_packages`.
    """

    takes_tuples = False

    def _called(self, outputs: Any, targets: Any) -> object:
        return self._function(self._meaning, outputs, targets)


def make_metric(
    spec: object,
    *,
    higher_is_better: bool | None = None,
    low: float | None = None,
    high: float | None = None,
    name: str | None = None,
    **settings: object,
) -> Metric:
    """Make a metric from a name, a metric of another package, or a callable.

    A metric of another package gets what it expects of outputs, whatever the network
    returns: decided labels, probabilities, logits or predicted numbers. It is refused
    if it does not suit the targets.

    Args:
        spec: one of
            a `Metric`, returned as it is;
            the name of a registered metric, which takes `settings`;
            a function of `sklearn.metrics` of targets and predictions: it gets decided
            labels, probabilities where it takes scores, logits where it takes
            decisions, or predicted numbers if it is of regression. Functions of
            scores that take `labels` get all classes;
            an object of `torchmetrics.classification` or `torchmetrics.regression`, of
            which a copy is taken, or a function of `torchmetrics.functional` of these:
            it gets probabilities, [N] where it is binary, [N, C] where it is of
            several classes or labels, or predicted numbers if it is of regression;
            an own object with `update(predictions, targets)`, `compute()` and
            `reset()`: it gets probabilities, [N] for C <= 2, and [N, C] for C > 2 or
            where it has `num_classes` > 1; predicted numbers where targets are numbers;
            any callable of the outputs, as the network returns them, and the targets.
            A `functools.partial` of a function is treated like the function; it gives
            further arguments, such as `average`.
        higher_is_better: direction of the value. Needed for a plain callable; known
            from the name of a scikit-learn function (`*_score`; `*_loss`, `*_error`),
            from an object's attribute `higher_is_better`, and for most functions of
            torchmetrics.
        low: least possible value; by default 0, or -1 for a correlation coefficient or
            Cohen's kappa of another package.
        high: greatest possible value; by default 1.
        name: short name; by default the name of the function or class.
        **settings: settings of a registered metric, such as `k` of "top-k".

    Returns:
        The metric, which nothing has tried yet.

    Raises:
        ConfigError: if it is none of these, compares anything but predictions with
            targets or gives several numbers, the direction is not known, the range is
            empty, a setting is not one of the metric's, or what is declared contradicts
            a finished metric.
    """
    declared = Declaration(higher_is_better, low, high, name)
    if isinstance(spec, str):
        return _finished(_registered(spec, settings), declared)
    if settings:
        raise ConfigError(
            "settings are accepted only with a metric given by name, got "
            f"{', '.join(settings)} with a {type(spec).__name__}"
        )
    if isinstance(spec, Metric):
        return _finished(spec, declared)
    if isinstance(spec, type):
        raise ConfigError(
            f"a metric must be an object or a function, got the class "
            f"{spec.__name__}: pass {spec.__name__}(...)"
        )
    return _foreign(spec, declared) or _plain(spec, declared)


def _foreign(spec: Any, declared: Declaration) -> CallableMetric | None:
    """Return the metric of another package; None if it is a callable like any."""
    if is_accumulator(spec):
        found = from_accumulator(spec)
    elif is_sklearn(spec):
        found = from_sklearn(spec)
    elif is_torchmetrics(spec):
        found = from_torchmetrics(spec)
    else:
        return None
    complete = _completed(spec, declared, found.low)
    return _declared(ForeignMetric, found.function, complete, found.higher_is_better)


def _plain(spec: object, declared: Declaration) -> CallableMetric:
    if not callable(spec):
        raise ConfigError(
            "a metric must be a Metric, a registered name, an object with update, "
            f"compute and reset, or a callable, got {type(spec).__name__} {spec!r}"
        )
    return _declared(CallableMetric, spec, _completed(spec, declared, 0.0), None)


def _registered(name: str, settings: dict[str, object]) -> Metric:
    """Return a registered metric, made with these settings."""
    kind = METRICS.get(name)
    known = inspect.signature(kind).parameters
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ConfigError(
            f"metric {name!r} has no setting {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(known) or 'none'}"
        )
    return kind(**settings)


def _finished(metric: Metric, declared: Declaration) -> Metric:
    """Return a complete metric, unless the declaration contradicts it."""
    own = Declaration(metric.higher_is_better, metric.low, metric.high, metric.name)
    if (
        declared.higher_is_better not in (None, own.higher_is_better)
        or declared.name not in (None, own.name)
        or declared.low not in (None, own.low)
        or declared.high not in (None, own.high)
    ):
        raise ConfigError(f"metric {own.name!r} is defined as {own}, not {declared}")
    return metric


def _completed(spec: object, declared: Declaration, least: float) -> Declaration:
    """Return a declaration with a name and a range."""
    name = declared.name or _name(spec)
    return Declaration(
        declared.higher_is_better,
        least if declared.low is None else declared.low,
        1.0 if declared.high is None else declared.high,
        name,
    )


def _declared(
    kind: type[CallableMetric],
    function: Callable[..., object],
    declared: Declaration,
    known: bool | None,
) -> CallableMetric:
    """Make a metric of a function, with the direction declared or else `known`."""
    better = known if declared.higher_is_better is None else declared.higher_is_better
    if better is None:
        raise ConfigError(
            f"metric {declared.name!r} does not say which direction is better: pass "
            f"higher_is_better=True or higher_is_better=False"
        )
    assert declared.name and declared.low is not None and declared.high is not None
    metric = kind(
        function,
        declared.name,
        higher_is_better=better,
        low=declared.low,
        high=declared.high,
    )
    metric.direction_declared = better is not known
    return metric


def _name(spec: object) -> str:
    inner = spec.func if isinstance(spec, partial) else spec
    return str(getattr(inner, "__name__", type(inner).__name__))


def _copied(targets: Targets) -> Targets:
    """Return a deep copy of targets that are no tensor."""
    found: Targets = copy.deepcopy(targets)
    return found


def class_probabilities(outputs: Tensor) -> Tensor:
    """Return the probabilities of all classes, shape [N, max(C, 2)], float64."""
    return probabilities(PLAIN, outputs)
