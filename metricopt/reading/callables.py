"""User-defined metrics: any callable, and metrics of other packages."""

import copy
import inspect
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Self

from torch import Tensor

from metricopt.errors import ConfigError, require_choice, require_kind
from metricopt.metrics.base import METRICS, Metric, ValueRange
from metricopt.reading.argument_order import TARGETS_FIRST, Order, order_of
from metricopt.reading.columns import Columns, apart, as_array, copied
from metricopt.reading.expected import ANY, Limits, probabilities, unwrapped
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
from metricopt.reading.scorers import (
    from_scorer,
    is_scorer,
    refuse_estimator_scorer,
    scorer_name,
    scorer_named,
    scorer_names,
)
from metricopt.reading.taking import NOTHING, Takes, takes_of
from metricopt.registry import find


@dataclass(frozen=True)
class Declaration:
    """What a user declares about a metric; None leaves it to the metric.

    Attributes:
        higher_is_better: direction of the native value.
        low: least possible native value.
        high: greatest possible native value.
        name: short name, as in tables.
        arguments: order of the arguments of a plain callable.
    """

    higher_is_better: bool | None = None
    low: float | None = None
    high: float | None = None
    name: str | None = None
    arguments: Order | None = None


DECLARED: dict[str, tuple[Any, str]] = {
    "higher_is_better": (bool | None, "True, False or None"),
    "low": (Real | None, "a number or None"),
    "high": (Real | None, "a number or None"),
    "name": (str | None, "a name or None"),
}
"""Kinds of what is declared, and what a message calls them."""


class CallableMetric(Metric):
    """A black-box function of outputs and targets, with what is declared about it.

    The function gets outputs as the network returns them, and copies: nobody else sees
    what it changes in place.

    Args:
        function: from outputs [N, C] and targets [N] to a number.
        name: short name, as in tables.
        higher_is_better: direction of the native value.
        low: least possible native value; None for no promise, see `ValueRange`.
        high: greatest possible native value; None for no promise.
        least: low end of the scale of values where no `low` is promised.

    Attributes:
        limits: least and greatest value that it can have; infinite where not known.

    Raises:
        ConfigError: if `low` and `high` are not finite with low < high.
    """

    direction_declared = True
    takes_tuples = True
    shape = "[N, C, ...]"
    range_remedy = ", which low and high promise"
    limits: Limits = ANY
    takes: Takes = NOTHING

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        *,
        higher_is_better: bool,
        low: float | None = None,
        high: float | None = None,
        least: float = 0.0,
    ) -> None:
        self._range = ValueRange(low, high, least)
        ends = self._range.low, self._range.high
        if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
            raise ConfigError(
                f"metric {name!r} needs a finite range low < high, "
                f"got low={low}, high={high}"
            )
        self.limits = (
            -math.inf if low is None else low,
            math.inf if high is None else high,
        )
        self._function = function
        self.source: object = function
        self._meaning: Meaning | None = None
        self.name = name
        self.higher_is_better = higher_is_better

    @property
    def low(self) -> float:  # type: ignore[override]
        """Low end of the range, or of the scale, of native values."""
        return self._range.low

    @property
    def high(self) -> float:  # type: ignore[override]
        """High end of the range, or of the scale, of native values."""
        return self._range.high

    def bound(self, meaning: Meaning, columns: Collection[str] = ()) -> Self:
        """Return the metric of outputs in the form of methods, and of some columns."""
        metric = copy.copy(self)
        metric.columns = self.takes.of(columns, self.name)
        # What values ask for is found anew in every call.
        metric._range = self._range.afresh()
        metric._meaning = meaning
        return metric

    def _value(self, outputs: Outputs, targets: Targets) -> object:
        own = each(lambda part: part.detach().clone(), outputs)
        bare, columns = apart(targets)
        held = bare.clone() if isinstance(bare, Tensor) else copy.deepcopy(bare)
        return self._called(own, held, copied(columns))

    def _in_range(self, value: float) -> float:
        found = self._range.take(value)
        if found is None:
            raise self._beyond(value, *self._range.ends)
        return found

    def _called(self, outputs: Outputs, targets: Targets, columns: Columns) -> object:
        meaning = self._meaning or PLAIN
        given: list[Any] = [meaning.outward(outputs), meaning.outward_targets(targets)]
        if meaning.arrays:
            given = [as_array(part) for part in given]
            columns = {name: as_array(part) for name, part in columns.items()}
        return self._function(*given, **columns)


@dataclass(frozen=True)
class _TargetsFirst:
    """A function of outputs and targets, made of one that takes them the other way."""

    function: Callable[..., object]

    def __call__(self, outputs: Any, targets: Any, /, **columns: Any) -> object:
        return self.function(targets, outputs, **columns)


class ForeignMetric(CallableMetric):
    """A metric of another package, which gets what it expects of the outputs.

    The function takes the meaning of outputs first; see `reading.other_packages`.
    """

    takes_tuples = False

    def _called(self, outputs: Any, targets: Any, columns: Columns) -> object:
        return self._function(self._meaning, outputs, targets, **columns)


def make_metric(
    spec: object,
    *,
    higher_is_better: bool | None = None,
    low: float | None = None,
    high: float | None = None,
    name: str | None = None,
    arguments: Order | None = None,
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
            the name of a scorer of scikit-learn, such as "f1_macro" or "neg_log_loss",
            or a scorer made by `make_scorer`: its function gets what the scorer would
            give it, and the value has the scorer's sign. A registered name comes first;
            a function of `sklearn.metrics` of targets and predictions: it gets decided
            labels, probabilities where it takes scores, logits where it takes
            decisions, or predicted numbers if it is of regression. Functions of
            scores that take `labels` get all classes;
            an object of `torchmetrics.classification` or `torchmetrics.regression`, of
            which a copy is taken, or a function of `torchmetrics.functional` of these:
            it gets probabilities, [N] where it is binary, [N, C] where it is of
            several classes or labels, or predicted numbers if it is of regression.
            Where it gives a value with its threshold, the value counts;
            an object of `torchmetrics.segmentation`, of which a copy is taken: it gets
            maps of decided labels in its `input_format`;
            an own object with `update(predictions, targets)`, `compute()` and
            `reset()`: it gets probabilities, [N] for C <= 2, and [N, C] for C > 2 or
            where it has `num_classes` > 1; predicted numbers where targets are numbers;
            any callable of the outputs, as the network returns them, and the targets;
            of the targets and the outputs if its parameters have names such as
            `y_true` and `y_pred`; further parameters take the columns of their names.
            A `functools.partial` of a function is treated like the function; it gives
            further arguments, such as `average`.
        higher_is_better: direction of the value. Needed for a plain callable; known
            from the name of a scikit-learn function (`*_score`; `*_loss`, `*_error`),
            from an object's attribute `higher_is_better`, and for most functions of
            torchmetrics.
        low: a promise that no value is less; one that is ends a call. Without it,
            values are taken as they come.
        high: a promise that no value is greater.
        name: short name; by default the name of the function or class.
        arguments: "outputs, targets" or "targets, outputs", the order in which a plain
            callable takes them; by default that of the names of its parameters, and
            outputs first where these say nothing.
        **settings: settings of a metric given by name, such as `k` of "top-k".

    Returns:
        The metric, which nothing has tried yet.

    Raises:
        ConfigError: if it is none of these, compares anything but predictions with
            targets or gives several numbers, the direction is not known, the range is
            empty, a setting is not one of the metric's, or what is declared contradicts
            a finished metric.
    """
    declared = Declaration(higher_is_better, low, high, name, arguments)
    for said, (kind, expected) in DECLARED.items():
        require_kind(said, getattr(declared, said), kind, expected)
    if arguments is not None:
        require_choice("arguments", arguments, Order)
    if isinstance(spec, str):
        if spec in METRICS or spec not in scorer_names():
            return _finished(_registered(spec, settings), declared)
        declared = replace(declared, name=name or spec)
        spec, settings = scorer_named(spec, settings), {}
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
    if is_scorer(spec):
        found = from_scorer(spec)
    elif is_accumulator(spec):
        found = from_accumulator(spec)
    elif is_sklearn(spec):
        found = from_sklearn(spec)
    elif is_torchmetrics(spec):
        found = from_torchmetrics(spec)
    else:
        return None
    _check_no_order(name_of(spec), declared)
    make = partial(ForeignMetric, least=found.low)
    metric = _declared(make, found.function, spec, declared, found.higher_is_better)
    metric.takes = found.takes
    (low, high), (least, most) = metric.limits, found.limits
    metric.limits = max(low, least), min(high, most)
    return metric


def _plain(spec: object, declared: Declaration) -> CallableMetric:
    if not callable(spec):
        raise ConfigError(
            "a metric must be a Metric, a registered name, an object with update, "
            f"compute and reset, or a callable, got {type(spec).__name__} {spec!r}"
        )
    refuse_estimator_scorer(spec)
    first = (declared.arguments or order_of(spec, name_of(spec))) == TARGETS_FIRST
    function = _TargetsFirst(spec) if first else spec
    return _declared(CallableMetric, function, spec, declared, None)


def _check_no_order(name: str, declared: Declaration) -> None:
    """Refuse an order of arguments for a metric whose order is known.

    Raises:
        ConfigError: if one was declared.
    """
    if declared.arguments is not None:
        raise ConfigError(
            f"arguments is for a callable of your own; the order of metric {name!r} is "
            "known"
        )


def _registered(name: str, settings: dict[str, object]) -> Metric:
    """Return a registered metric, made with these settings."""
    kind: type[Metric] = find(name, METRICS, others=scorer_names())
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
    _check_no_order(metric.name, declared)
    own = Declaration(metric.higher_is_better, metric.low, metric.high, metric.name)
    if (
        declared.higher_is_better not in (None, own.higher_is_better)
        or declared.name not in (None, own.name)
        or declared.low not in (None, own.low)
        or declared.high not in (None, own.high)
    ):
        raise ConfigError(f"metric {own.name!r} is defined as {own}, not {declared}")
    return metric


def _declared(
    kind: Callable[..., CallableMetric],
    function: Callable[..., object],
    spec: object,
    declared: Declaration,
    known: bool | None,
) -> CallableMetric:
    """Make a metric of a function, with the direction declared or else `known`."""
    name = declared.name or name_of(spec)
    better = known if declared.higher_is_better is None else declared.higher_is_better
    if better is None:
        raise ConfigError(
            f"metric {name!r} does not say which direction is better: pass "
            f"higher_is_better=True or higher_is_better=False"
        )
    range_ = {"low": declared.low, "high": declared.high}
    metric = kind(function, name, higher_is_better=better, **range_)
    metric.direction_declared = better is not known
    metric.takes, metric.source = takes_of(spec), spec
    return metric


def name_of(spec: object) -> str:
    """Return the name of what `make_metric` accepts."""
    if isinstance(spec, str | Metric):
        return spec if isinstance(spec, str) else spec.name
    inner = unwrapped(spec)
    if is_scorer(inner):
        return scorer_name(inner)
    return str(getattr(inner, "__name__", type(inner).__name__))


def class_probabilities(outputs: Tensor) -> Tensor:
    """Return the probabilities of all classes, shape [N, max(C, 2)], float64."""
    return probabilities(PLAIN, outputs)
