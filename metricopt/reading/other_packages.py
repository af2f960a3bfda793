"""Metrics of scikit-learn and torchmetrics, and objects that accumulate a value."""

import copy
import functools
import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from metricopt.errors import ConfigError, DataError
from metricopt.reading.columns import Column, as_array
from metricopt.reading.expected import (
    LABELS,
    NUMBERS,
    WRAP,
    Expected,
    Foreign,
    Predictions,
    check_arguments,
    keywords,
    least_value,
    limits_of,
    unwrapped,
)
from metricopt.reading.maps import Maps
from metricopt.reading.meaning import Meaning, Truth
from metricopt.reading.taking import takes_of

SCORES = ("y_score", "y_proba", "y_prob")
SECOND = ("y_pred", "pred_decision", *SCORES)
SKLEARN_ARGUMENTS = (*(("y_true", second) for second in SECOND), ("y1", "y2"))
"""What the functions call targets and predictions; cohen_kappa_score has the last."""
# In older releases the probabilities of these two functions are called y_pred.
PROBABILITY_FUNCTIONS = ("log_loss", "d2_log_loss_score")
WEIGHTS = ("sample_weight",)
"""The column that functions of scikit-learn take."""
GRADED = ("dcg_score", "ndcg_score")
"""Functions of scores for several labels, or for numbers that grade them."""
MULTI_LABEL = (
    "coverage_error",
    "label_ranking_average_precision_score",
    "label_ranking_loss",
)
PLURAL = ("_curve", "_matrix", "_ratios", "_report", "_support", "_thresholds")
"""Ends of the names of functions of scikit-learn that give several numbers."""
GIVES_SEVERAL = f"gives several numbers, but a metric is one: {WRAP}"
_REGRESSION_MODULE = "sklearn.metrics._regression"


def is_sklearn(spec: object) -> bool:
    """Return whether this is a function of `sklearn.metrics`."""
    return _is_function_of("sklearn.metrics", spec)


def from_sklearn(
    spec: Callable[..., object], predictions: Predictions | None = None
) -> Foreign:
    """Return a function of scikit-learn as a metric.

    It gets the predictions that it is for, unless others are asked for.

    Raises:
        ConfigError: if it is no function of true and predicted targets alone, or gives
            several numbers, as its name tells.
    """
    inner = unwrapped(spec)
    name = inner.__name__
    check_arguments(f"scikit-learn's {name}", spec, SKLEARN_ARGUMENTS)
    if name.endswith(PLURAL):
        raise ConfigError(f"scikit-learn's {name} {GIVES_SEVERAL}")
    expected = expected_by_sklearn(inner)
    if predictions is not None:
        expected = replace(expected, predictions=predictions)
    # Without them, a class that no target has would be missed.
    counted = "labels" in inspect.signature(inner).parameters
    fills = counted and expected.predictions != "labels"
    if keywords(spec).get("labels") is not None:
        fills = False
    better = name.endswith(("_score", "_corrcoef")) or None
    if name.endswith(("_loss", "_error", "_deviance")):
        better = False
    function = functools.partial(call_sklearn, spec, expected, fills=fills)
    takes, limits = takes_of(spec, only=WEIGHTS), limits_of(name, keywords(spec))
    return Foreign(function, better, least_value(name), takes, limits)


def expected_by_sklearn(inner: Any) -> Expected:
    """Return what a function of scikit-learn expects, by its parameters."""
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


def call_sklearn(
    function: Callable[..., object],
    expected: Expected,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
    /,
    *,
    fills: bool = False,
    **columns: Column,
) -> object:
    """Call a function with arrays; `fills` says whether it is given all classes."""
    from sklearn.exceptions import UndefinedMetricWarning

    given, truth = expected.of(meaning, outputs, targets)
    extra = {name: as_array(part) for name, part in columns.items()}
    if fills and truth.ndim == 1:
        extra["labels"] = np.arange(given.shape[1] if given.ndim == 2 else 2)
    one = expected.predictions == "decisions" and given.ndim == 1
    if one and len(truth.unique()) < 2:
        raise DataError(
            f"{expected.name} needs targets of both classes, got only "
            f"{truth[0].item()}: it would be taken for the negative class"
        )
    with warnings.catch_warnings():
        # Networks often predict one class only early on. If the value is undefined as
        # well, it is NaN, which `Metric.value` refuses.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return function(_array(truth), _array(given), **extra)


def _array(values: Tensor) -> np.ndarray[Any, Any]:
    return values.detach().cpu().numpy()


TORCH_ARGUMENTS = (("preds", "target"), ("preds", "targets"))
FAMILIES = ("classification", "regression", "segmentation")
TASKS = ("binary", "multiclass", "multilabel")
ENSEMBLES = ("continuousrankedprobabilityscore",)
"""Metrics of several predictions of one number."""
SEVERAL = ("confusionmatrix", "precisionrecallcurve", "roc", "statscores")
"""Metrics that give several numbers, whatever their task."""
_PARTS = ("update", "compute", "reset")


def is_accumulator(spec: object) -> bool:
    """Return whether this is an object with `update`, `compute` and `reset`."""
    return all(callable(getattr(spec, part, None)) for part in _PARTS)


def is_torchmetrics(spec: object) -> bool:
    """Return whether this is a function of `torchmetrics.functional`."""
    return _is_function_of("torchmetrics.functional.", spec)


def from_accumulator(spec: Any) -> Foreign:
    """Return an object with `update`, `compute` and `reset` as a metric.

    It takes a copy of an object of torchmetrics, which keeps its state and its device.

    Raises:
        ConfigError: if it is of a family of torchmetrics that compares anything but
            targets with predictions, or gives more than one number.
    """
    mro = type(spec).__mro__
    kinds = [kind for kind in mro if kind.__module__.startswith("torchmetrics.")]
    better = getattr(spec, "higher_is_better", None)
    if not kinds or kinds[0].__name__ == "Metric":
        columns = (getattr(spec, "num_classes", None) or 1) > 1
        truths = (*LABELS, *NUMBERS)
        expected = Expected(type(spec).__name__, truths=truths, every_class=columns)
        own = copy.deepcopy(spec) if kinds else spec
        function = functools.partial(_accumulate, own, expected)
        return Foreign(function, better, takes=takes_of(own.update))
    name, family = kinds[0].__name__, kinds[0].__module__.split(".")[1]
    _check_family(name, family)
    check_arguments(f"{name}.update", spec.update, TORCH_ARGUMENTS)
    if family == "segmentation":
        maps = Maps(name, spec.num_classes, spec.input_format)
        own = copy.deepcopy(spec)
        function = functools.partial(_accumulate, own, maps)
        return Foreign(function, better, limits=limits_of(name, {}))
    task = next((task for task in TASKS if name.lower().startswith(task)), None)
    classes = getattr(spec, "num_classes", None)
    expected = _expected_by_torchmetrics(name, family, task, classes)
    function = functools.partial(_accumulate, copy.deepcopy(spec), expected)
    if better is None and _is_fixed(name):
        better = True
    return Foreign(function, better, least_value(name), limits=limits_of(name, {}))


def from_torchmetrics(spec: Callable[..., object]) -> Foreign:
    """Return a function of `torchmetrics.functional` as a metric.

    Raises:
        ConfigError: if it is no function of predictions and targets alone, or one of
            segmentation, which gives several values.
    """
    inner, given = unwrapped(spec), keywords(spec)
    name, family = inner.__name__, inner.__module__.split(".")[2]
    _check_family(name, family)
    if family == "segmentation":
        raise ConfigError(
            f"torchmetrics' {name} gives a value for every image: pass an object of "
            "the class of the same name, which averages them"
        )
    check_arguments(f"torchmetrics' {name}", spec, TORCH_ARGUMENTS)
    task, title = name.split("_")[0], name
    if task not in TASKS:
        task = given.get("task")
        title = f"{task}{name}"
    expected = _expected_by_torchmetrics(name, family, task, given.get("num_classes"))
    better = _direction(family, name if family == "regression" else title)
    if better is None and _is_fixed(name):
        better = True
    function = functools.partial(_call_torchmetrics, spec, expected)
    return Foreign(function, better, least_value(name), limits=limits_of(name, given))


def _check_family(name: str, family: str) -> None:
    if family == "collections":
        raise ConfigError(
            f"a {name} returns a dictionary of values, but a metric is one number: "
            f"pass one of its metrics"
        )
    if family not in FAMILIES:
        raise ConfigError(
            f"torchmetrics' {name} is of {family}, and only metrics of "
            f"{', '.join(FAMILIES[:-1])} and {FAMILIES[-1]} compare predictions with "
            f"targets alone: {WRAP}"
        )


def _expected_by_torchmetrics(
    name: str, family: str, task: str | None, classes: int | None
) -> Expected:
    """Return what a metric of torchmetrics expects, by its task."""
    plain = name.lower().replace("_", "")
    if plain in ENSEMBLES:
        raise ConfigError(f"{name} compares several predictions of a number: {WRAP}")
    if plain.removeprefix(task or "") in SEVERAL:
        raise ConfigError(f"torchmetrics' {name} {GIVES_SEVERAL}")
    if family == "regression":
        return Expected(name, truths=NUMBERS)
    if task == "binary":
        return Expected(name, classes=2)
    if task == "multilabel":
        return Expected(name, truths=("multi-label",))
    if task == "multiclass":
        return Expected(
            name,
            truths=("labels",),
            classes=classes,
            every_class=True,
            whole="exactmatch" in plain,
        )
    raise ConfigError(
        f"torchmetrics' {name} has task={task!r}; expected one of {', '.join(TASKS)}"
    )


def _direction(family: str, name: str) -> bool | None:
    """Return whether higher is better in the class that is called like a function."""
    module = importlib.import_module(f"torchmetrics.{family}")
    kinds = {kind.lower(): kind for kind in dir(module)}
    kind = kinds.get(name.replace("_", ""), "")
    found: bool | None = getattr(getattr(module, kind, None), "higher_is_better", None)
    return found


def _call_torchmetrics(
    function: Callable[..., object],
    expected: Expected,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
) -> object:
    return _first_if_fixed(expected, function(*expected.of(meaning, outputs, targets)))


def _accumulate(
    metric: Any,
    expected: Expected | Maps,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
    /,
    **columns: Column,
) -> object:
    given, truth = expected.of(meaning, outputs, targets)
    if isinstance(metric, nn.Module):
        metric.to(given.device)
    metric.reset()
    metric.update(given, truth, **columns)
    return _first_if_fixed(expected, metric.compute())


FIXED = ("fixedprecision", "fixedrecall", "atspecificity", "atsensitivity")
"""Ends of the names of metrics that give a value and the threshold it is reached at."""


def _is_fixed(name: str) -> bool:
    return name.lower().replace("_", "").endswith(FIXED)


def _first_if_fixed(expected: Expected | Maps, found: object) -> object:
    """Return the value alone of a metric that gives a threshold with it."""
    if isinstance(found, tuple) and len(found) == 2 and _is_fixed(expected.name):
        return found[0]
    return found


def _is_function_of(package: str, spec: object) -> bool:
    inner = unwrapped(spec)
    module = getattr(inner, "__module__", None) or ""
    return inspect.isfunction(inner) and module.startswith(package)
