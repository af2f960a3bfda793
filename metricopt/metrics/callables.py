"""User-defined metrics: scikit-learn functions, accumulating objects, any callable."""

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS, Metric
from metricopt.metrics.confusion import predict_labels
from metricopt.outputs import Outputs, Targets, each

MetricFunction = Callable[[Any, Any], object]
"""From outputs [N, C], or a tuple of tensors, and N targets to a number."""

SCORE_NAMES = ("y_score", "y_proba", "y_prob")
# In older releases the probabilities of these two functions are called y_pred.
PROBABILITY_FUNCTIONS = ("log_loss", "d2_log_loss_score")


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
    low: float = 0.0
    high: float = 1.0
    name: str | None = None


class CallableMetric(Metric):
    """A black-box function of outputs and targets, with what is declared about it.

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

    def __init__(
        self,
        function: MetricFunction,
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
        self.name = name
        self.higher_is_better = higher_is_better
        self.low = low
        self.high = high

    def _value(self, outputs: Outputs, targets: Targets) -> object:
        return self._function(each(Tensor.detach, outputs), targets)


def make_metric(
    spec: object,
    *,
    higher_is_better: bool | None = None,
    low: float = 0.0,
    high: float = 1.0,
    name: str | None = None,
    **settings: object,
) -> Metric:
    """Make a metric from a name, a scikit-learn function, an object or a callable.

    Args:
        spec: one of
            a `Metric`, returned as it is;
            the name of a registered metric, which takes `settings`;
            a function of `sklearn.metrics` called with (y_true, y_pred): it gets
            predicted labels, or probabilities if it takes scores, shape [N] for
            C <= 2 and [N, C] else;
            an object with `update(predictions, targets)`, `compute()` and `reset()`
            as in torchmetrics: it gets probabilities of shape [N] for C <= 2, and
            [N, C] for C > 2 or where it has `num_classes` > 1;
            any callable from outputs [N, C] (logits), a tuple where the network
            returns one, and targets [N] to a number.
            A `functools.partial` of a function is treated like the function.
        higher_is_better: direction of the value. Needed for a plain callable; known
            from the name of a scikit-learn function (`*_score`; `*_loss`, `*_error`)
            and from an object's attribute `higher_is_better`.
        low: least possible value.
        high: greatest possible value.
        name: short name; by default the name of the function or class.
        **settings: settings of a registered metric, such as `k` of "top-k".

    Returns:
        The metric; `check_metric` tries it on outputs and targets.

    Raises:
        ConfigError: if it is none of these, the direction is not known, the range is
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
    if all(callable(getattr(spec, part, None)) for part in _ACCUMULATOR):
        known = getattr(spec, "higher_is_better", None)
        return _declared(functools.partial(_accumulate, spec), spec, declared, known)
    if not callable(spec):
        raise ConfigError(
            "a metric must be a Metric, a registered name, an object with update, "
            f"compute and reset, or a callable, got {type(spec).__name__} {spec!r}"
        )
    if _is_sklearn(spec):
        function, known = _from_sklearn(spec)
        return _declared(function, spec, declared, known)
    return _declared(spec, spec, declared, None)


_ACCUMULATOR = ("update", "compute", "reset")


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
    ranges = {(0.0, 1.0), (own.low, own.high)}
    if (
        declared.higher_is_better not in (None, own.higher_is_better)
        or declared.name not in (None, own.name)
        or (declared.low, declared.high) not in ranges
    ):
        raise ConfigError(f"metric {own.name!r} is defined as {own}, not {declared}")
    return metric


def _declared(
    function: MetricFunction, spec: object, declared: Declaration, known: bool | None
) -> CallableMetric:
    """Make a metric of a function, with the direction declared or else `known`."""
    name = declared.name or _name(spec)
    better = known if declared.higher_is_better is None else declared.higher_is_better
    if better is None:
        raise ConfigError(
            f"metric {name!r} does not say which direction is better: pass "
            f"higher_is_better=True or higher_is_better=False"
        )
    metric = CallableMetric(
        function, name, higher_is_better=better, low=declared.low, high=declared.high
    )
    metric.direction_declared = better is not known
    # The wrappers of scikit-learn functions and objects read one tensor of outputs.
    metric.takes_tuples = function is spec
    return metric


def _name(spec: object) -> str:
    inner = _unwrapped(spec)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _unwrapped(spec: object) -> Any:
    while isinstance(spec, functools.partial):
        spec = spec.func
    return spec


def _is_sklearn(spec: object) -> bool:
    inner = _unwrapped(spec)
    module = getattr(inner, "__module__", None) or ""
    return inspect.isfunction(inner) and module.startswith("sklearn.metrics")


def _from_sklearn(spec: Callable[..., object]) -> tuple[MetricFunction, bool | None]:
    """Return a scikit-learn function as one of outputs, and its direction if known."""
    inner = _unwrapped(spec)
    name, parameters = inner.__name__, [*inspect.signature(inner).parameters]
    if parameters[:1] != ["y_true"] or parameters[1] not in ("y_pred", *SCORE_NAMES):
        raise ConfigError(
            f"scikit-learn's {name} takes ({', '.join(parameters[:2])}), not "
            f"(y_true, y_pred): wrap it in a function of (outputs, targets)"
        )
    known = name.endswith("_score") or None
    if name.endswith(("_loss", "_error")):
        known = False
    scores = parameters[1] in SCORE_NAMES or name in PROBABILITY_FUNCTIONS
    prepare = _probabilities if scores else predict_labels
    return functools.partial(_call_sklearn, spec, prepare), known


def _call_sklearn(
    function: Callable[..., object],
    prepare: Callable[[Tensor], Tensor],
    outputs: Tensor,
    targets: Tensor,
) -> object:
    from sklearn.exceptions import UndefinedMetricWarning

    truth: np.ndarray[Any, Any] = targets.cpu().numpy()
    with warnings.catch_warnings():
        # Networks often predict one class only early on. If the value is undefined as
        # well, it is NaN, which `Metric.value` refuses.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(truth, prepare(outputs).cpu().numpy())


def _accumulate(metric: Any, outputs: Tensor, targets: Tensor) -> object:
    if isinstance(metric, torch.nn.Module):
        metric.to(outputs.device)
    matrix = (getattr(metric, "num_classes", None) or 1) > 1
    prepare = class_probabilities if matrix else _probabilities
    metric.reset()
    metric.update(prepare(outputs), targets)
    return metric.compute()


def _probabilities(outputs: Tensor) -> Tensor:
    """Return the probability of the positive class [N] for C <= 2, [N, C] else."""
    matrix = class_probabilities(outputs)
    return matrix[:, 1] if matrix.shape[1] == 2 else matrix


def class_probabilities(outputs: Tensor) -> Tensor:
    """Return the probabilities of all classes, shape [N, max(C, 2)], float64.

    In double precision, so that confident scores do not become ties.
    """
    outputs = outputs.double()
    if outputs.shape[1] == 1:
        return torch.cat([torch.sigmoid(-outputs), torch.sigmoid(outputs)], 1)
    return outputs.softmax(1)
