"""Scorers of scikit-learn, by their names or as objects made by `make_scorer`.

A scorer holds a function of targets and predictions, the keyword arguments it is called
with, a sign that makes higher values better, and the method of an estimator whose
predictions it wants. scikit-learn is imported when a name is looked up.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from metricopt.errors import ConfigError
from metricopt.reading.expected import (
    LABELS,
    NUMBERS,
    WRAP,
    Expected,
    Foreign,
    ForeignFunction,
    Predictions,
    least_value,
    negated,
)
from metricopt.reading.other_packages import call_sklearn, from_sklearn, is_sklearn
from metricopt.reading.taking import takes_of

READS: dict[str, Predictions] = {
    "predict": "labels",
    "predict_proba": "scores",
    "decision_function": "decisions",
}
"""What the methods of an estimator return."""
CLUSTERS = "sklearn.metrics.cluster"
ESTIMATOR_FIRST = ("estimator", "clf", "model")
"""First parameter of a callable that scikit-learn takes for a scorer."""


@functools.cache
def scorer_names() -> frozenset[str]:
    """Return the names of all scorers of scikit-learn."""
    from sklearn.metrics import get_scorer_names

    return frozenset(get_scorer_names())


def scorer_named(name: str, settings: Mapping[str, object]) -> Any:
    """Return the scorer of a name, with more arguments for its function.

    Raises:
        ConfigError: if the function does not take them.
    """
    from sklearn.metrics import get_scorer, make_scorer

    scorer = get_scorer(name)
    if not settings:
        return scorer
    known = [*inspect.signature(scorer._score_func).parameters][2:]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ConfigError(
            f"metric {name!r} has no setting {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(known) or 'none'}"
        )
    return make_scorer(
        scorer._score_func,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        **(scorer._kwargs | dict(settings)),
    )


def is_scorer(spec: object) -> bool:
    """Return whether this is a scorer of scikit-learn."""
    inside = type(spec).__module__ == "sklearn.metrics._scorer"
    return inside and not inspect.isroutine(spec)


def scorer_name(scorer: Any) -> str:
    """Return the name of the function of a scorer, after "neg_" if it is negated."""
    function = getattr(scorer, "_score_func", scorer)
    name = str(getattr(function, "__name__", type(function).__name__))
    return name if getattr(scorer, "_sign", 1) > 0 else f"neg_{name}"


def from_scorer(scorer: Any) -> Foreign:
    """Return a scorer as a metric.

    Raises:
        ConfigError: if it scores an estimator by itself, compares clusterings, or its
            function takes anything but targets and predictions.
    """
    name, reads = scorer_name(scorer), predictions_of(scorer)
    inner = scorer._score_func
    if inner.__module__.startswith(CLUSTERS):
        raise ConfigError(
            f"{name} compares clusterings, whose labels may have any order: {WRAP} if "
            "classes are meant as clusters"
        )
    function = functools.partial(inner, **scorer._kwargs)
    if is_sklearn(inner):
        found = from_sklearn(function, reads)
    else:
        expected = Expected(name, reads or "scores", (*LABELS, *NUMBERS))
        call = functools.partial(call_sklearn, function, expected)
        found = Foreign(call, None, least_value(name), takes_of(function))
    if scorer._sign > 0:
        return found._replace(higher_is_better=True)
    function = functools.partial(_negated, found.function)
    return Foreign(function, True, -1.0, found.takes, negated(found.limits))


def predictions_of(scorer: Any) -> Predictions | None:
    """Return what a scorer's function gets; None to leave it to the function.

    It is left where the scorer takes decisions or probabilities, whichever there are.

    Raises:
        ConfigError: if the scorer scores an estimator by itself.
    """
    method = getattr(scorer, "_response_method", None)
    if method is None or not hasattr(scorer, "_score_func"):
        raise ConfigError(
            f"a {type(scorer).__name__} of scikit-learn scores an estimator, not "
            "predictions: pass one scorer made by make_scorer, or a function of "
            "(y_true, y_pred)"
        )
    return READS[method] if isinstance(method, str) else None


def refuse_estimator_scorer(spec: Callable[..., object]) -> None:
    """Raise ConfigError for a callable of an estimator, examples and targets."""
    try:
        parameters = [*inspect.signature(spec).parameters]
    except (TypeError, ValueError):  # some functions in C tell nothing
        return
    if len(parameters) > 2 and parameters[0].lower() in ESTIMATOR_FIRST:
        raise ConfigError(
            f"a metric compares outputs with targets, got a scorer of "
            f"({', '.join(parameters[:3])}), which runs the estimator itself: pass a "
            "function of (y_true, y_pred)"
        )


def _negated(
    function: ForeignFunction,
    meaning: Any,
    outputs: Any,
    targets: Any,
    /,
    **columns: Any,
) -> object:
    value: Any = function(meaning, outputs, targets, **columns)
    return -value
