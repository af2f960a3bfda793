"""Functions of `sklearn.metrics`."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from metricopt.errors import DataError
from metricopt.reading.expected import (
    LABELS,
    NUMBERS,
    Expected,
    Foreign,
    Predictions,
    check_arguments,
    keywords,
    least_value,
    unwrapped,
)
from metricopt.reading.meaning import Meaning, Truth

SCORES = ("y_score", "y_proba", "y_prob")
SECOND = ("y_pred", "pred_decision", *SCORES)
ARGUMENTS = (*(("y_true", second) for second in SECOND), ("y1", "y2"))
"""What the functions call targets and predictions; cohen_kappa_score has the last."""
# In older releases the probabilities of these two functions are called y_pred.
PROBABILITY_FUNCTIONS = ("log_loss", "d2_log_loss_score")
GRADED = ("dcg_score", "ndcg_score")
"""Functions of scores for several labels, or for numbers that grade them."""
MULTI_LABEL = (
    "coverage_error",
    "label_ranking_average_precision_score",
    "label_ranking_loss",
)
_REGRESSION_MODULE = "sklearn.metrics._regression"


def is_sklearn(spec: object) -> bool:
    """Return whether this is a function of `sklearn.metrics`."""
    inner = unwrapped(spec)
    module = getattr(inner, "__module__", None) or ""
    return inspect.isfunction(inner) and module.startswith("sklearn.metrics")


def from_sklearn(spec: Callable[..., object]) -> Foreign:
    """Return a function of scikit-learn as a metric.

    Raises:
        ConfigError: if it is no function of true and predicted targets alone.
    """
    inner = unwrapped(spec)
    name = inner.__name__
    check_arguments(f"scikit-learn's {name}", spec, ARGUMENTS)
    expected = _expected(inner)
    # Without them, a class that no target has would be missed.
    counted = "labels" in inspect.signature(inner).parameters
    fills = counted and expected.predictions != "labels"
    if keywords(spec).get("labels") is not None:
        fills = False
    better = name.endswith(("_score", "_corrcoef")) or None
    if name.endswith(("_loss", "_error", "_deviance")):
        better = False
    function = functools.partial(_call, spec, expected, fills)
    return Foreign(function, better, least_value(name))


def _expected(inner: Any) -> Expected:
    name = f"scikit-learn's {inner.__name__}"
    if inner.__module__ == _REGRESSION_MODULE:
        return Expected(name, truths=NUMBERS)
    parameters = [*inspect.signature(inner).parameters]
    predictions: Predictions = "labels"
    if parameters[1] == "pred_decision":
        predictions = "decisions"
    elif parameters[1] in SCORES or inner.__name__ in PROBABILITY_FUNCTIONS:
        predictions = "scores"
    return Expected(name, predictions, _truths(inner.__name__, predictions, parameters))


def _truths(
    name: str, predictions: Predictions, parameters: list[str]
) -> tuple[Truth, ...]:
    """Return the kinds of targets that a function of labels takes."""
    if name in GRADED:
        return ("multi-label", "numbers")
    if name in MULTI_LABEL:
        return ("multi-label",)
    # Some of these read several labels as a distribution over classes.
    one = "labels" in parameters and "average" not in parameters
    return ("labels",) if one and predictions != "labels" else LABELS


def _call(
    function: Callable[..., object],
    expected: Expected,
    fills: bool,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
) -> object:
    """Call a function; `fills` says whether it is told all classes."""
    from sklearn.exceptions import UndefinedMetricWarning

    given, truth = expected.of(meaning, outputs, targets)
    extra = {}
    if fills and truth.ndim == 1:
        extra["labels"] = np.arange(given.shape[1] if given.ndim == 2 else 2)
    if expected.predictions == "decisions" and given.ndim == 1:
        _check_both(expected.name, truth)
    with warnings.catch_warnings():
        # Networks often predict one class only early on. If the value is undefined as
        # well, it is NaN, which `Metric.value` refuses.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(_array(truth), _array(given), **extra)


def _check_both(name: str, truth: Tensor) -> None:
    if len(truth.unique()) < 2:
        raise DataError(
            f"{name} needs targets of both classes, got only "
            f"{truth[0].item()}: it would be taken for the negative class"
        )


def _array(values: Tensor) -> np.ndarray[Any, Any]:
    return values.detach().cpu().numpy()
