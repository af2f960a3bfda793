"""What the metrics of scikit-learn and torchmetrics expect, by their names."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError
from metricopt.meaning.contract import Meaning, Truth
from metricopt.meaning.reading import one_by_one, probabilities
from metricopt.metrics.confusion import predict_labels

Expected = Literal["labels", "scores", "decisions", "values"]
"""Decided labels, probabilities, logits, or predicted numbers."""
ForeignFunction = Callable[[Meaning, Tensor, Tensor], object]
"""From the meaning of outputs, outputs [N, C] in the form of methods, and targets."""

SCORE_NAMES = ("y_score", "y_proba", "y_prob")
# In older releases the probabilities of these two functions are called y_pred.
PROBABILITY_FUNCTIONS = ("log_loss", "d2_log_loss_score")
SIGNED = ("matthews_corrcoef", "cohen_kappa_score")
"""Functions whose least value is -1."""
_REGRESSION_MODULE = "sklearn.metrics._regression"


def unwrapped(spec: object) -> Any:
    """Return the function inside of any number of `functools.partial`."""
    while isinstance(spec, functools.partial):
        spec = spec.func
    return spec


def is_sklearn(spec: object) -> bool:
    """Return whether this is a function of `sklearn.metrics`."""
    inner = unwrapped(spec)
    module = getattr(inner, "__module__", None) or ""
    return inspect.isfunction(inner) and module.startswith("sklearn.metrics")


def from_sklearn(spec: Callable[..., object]) -> tuple[ForeignFunction, bool | None]:
    """Return a function of scikit-learn, and whether higher is better, if known.

    Raises:
        ConfigError: if it is no function of true and predicted targets.
    """
    inner = unwrapped(spec)
    name, parameters = inner.__name__, [*inspect.signature(inner).parameters]
    known = ("y_pred", "pred_decision", *SCORE_NAMES)
    if parameters[:1] != ["y_true"] or parameters[1] not in known:
        raise ConfigError(
            f"scikit-learn's {name} takes ({', '.join(parameters[:2])}), not "
            f"(y_true, y_pred): wrap it in a function of (outputs, targets)"
        )
    better = name.endswith("_score") or None
    if name.endswith(("_loss", "_error", "_deviance")):
        better = False
    return functools.partial(_call_sklearn, spec, _expected(inner)), better


def _expected(inner: Any) -> Expected:
    second = [*inspect.signature(inner).parameters][1]
    if inner.__module__ == _REGRESSION_MODULE:
        return "values"
    if second == "pred_decision":
        return "decisions"
    scores = second in SCORE_NAMES or inner.__name__ in PROBABILITY_FUNCTIONS
    return "scores" if scores else "labels"


def _call_sklearn(
    function: Callable[..., object],
    expected: Expected,
    meaning: Meaning,
    outputs: Tensor,
    targets: Tensor,
) -> object:
    from sklearn.exceptions import UndefinedMetricWarning

    name = f"scikit-learn's {unwrapped(function).__name__}"
    given, truth = expected_of(name, expected, meaning, outputs, targets)
    with warnings.catch_warnings():
        # Networks often predict one class only early on. If the value is undefined as
        # well, it is NaN, which `Metric.value` refuses.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(_array(truth), _array(given))


def from_accumulator(spec: Any) -> ForeignFunction:
    """Return an object with `update`, `compute` and `reset` as a function."""
    return functools.partial(_accumulate, spec)


def _accumulate(
    metric: Any, meaning: Meaning, outputs: Tensor, targets: Tensor
) -> object:
    name = type(metric).__name__
    if isinstance(metric, torch.nn.Module):
        metric.to(outputs.device)
    numbers = type(metric).__module__.startswith("torchmetrics.regression")
    expected: Expected = "values" if numbers else "scores"
    classes = (getattr(metric, "num_classes", None) or 1) > 1
    given, truth = expected_of(name, expected, meaning, outputs, targets, classes)
    metric.reset()
    metric.update(given, truth)
    return metric.compute()


def expected_of(
    name: str,
    expected: Expected,
    meaning: Meaning,
    outputs: Tensor,
    targets: Tensor,
    every_class: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return predictions of the expected kind, and targets to compare them with.

    Args:
        name: of the metric, for messages.
        expected: what the metric expects.
        meaning: of the outputs.
        outputs: in the form of methods, [N, C, ...].
        targets: shape [N, ...].
        every_class: whether two classes get a column each, not one for the second.

    Raises:
        DataError: if outputs and targets are of another kind.
    """
    truths: tuple[Truth, ...] = ("labels", "multi-label")
    if expected == "values":
        truths = ("numbers",)
    if meaning.truth not in truths:
        raise DataError(
            f"{name} expects {' or '.join(truths)} as targets, but here targets are "
            f"{meaning.truth}: {meaning.describe()}"
        )
    columns, truth = one_by_one(meaning, outputs, targets)
    if expected == "values":
        single = columns.shape[1] == 1
        return (columns[:, 0] if single else columns), truth
    truth = truth.long()
    if expected == "scores":
        scores = probabilities(meaning, columns)
        two = meaning.truth == "labels" and scores.shape[1] == 2 and not every_class
        return (scores[:, 1] if two else scores), truth
    if expected == "decisions":
        return (columns[:, 0] if columns.shape[1] == 1 else columns), truth
    if meaning.truth == "multi-label":
        return (columns >= 0).long(), truth
    return predict_labels(columns), truth


def _array(values: Tensor) -> np.ndarray[Any, Any]:
    return values.detach().cpu().numpy()
