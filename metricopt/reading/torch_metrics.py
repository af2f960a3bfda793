"""Metrics of torchmetrics, and objects with `update`, `compute` and `reset`."""

import copy
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from metricopt.errors import ConfigError
from metricopt.reading.expected import (
    LABELS,
    NUMBERS,
    WRAP,
    Expected,
    Foreign,
    check_arguments,
    keywords,
    least_value,
    unwrapped,
)
from metricopt.reading.meaning import Meaning

ARGUMENTS = (("preds", "target"), ("preds", "targets"))
FAMILIES = ("classification", "regression")
TASKS = ("binary", "multiclass", "multilabel")
ENSEMBLES = ("continuousrankedprobabilityscore",)
"""Metrics of several predictions of one number."""
_PARTS = ("update", "compute", "reset")


def is_accumulator(spec: object) -> bool:
    """Return whether this is an object with `update`, `compute` and `reset`."""
    return all(callable(getattr(spec, part, None)) for part in _PARTS)


def is_torchmetrics(spec: object) -> bool:
    """Return whether this is a function of `torchmetrics.functional`."""
    inner = unwrapped(spec)
    module = getattr(inner, "__module__", None) or ""
    return inspect.isfunction(inner) and module.startswith("torchmetrics.functional.")


def from_accumulator(spec: Any) -> Foreign:
    """Return an object with `update`, `compute` and `reset` as a metric.

    It takes a copy of an object of torchmetrics, which keeps its state and its device.

    Raises:
        ConfigError: if it is of a family of torchmetrics that compares anything but
            targets with predictions, or gives more than one number.
    """
    kinds = [kind for kind in type(spec).__mro__ if _is_theirs(kind)]
    better = getattr(spec, "higher_is_better", None)
    if not kinds or kinds[0].__name__ == "Metric":
        columns = (getattr(spec, "num_classes", None) or 1) > 1
        truths = (*LABELS, *NUMBERS)
        expected = Expected(type(spec).__name__, truths=truths, every_class=columns)
        own = copy.deepcopy(spec) if kinds else spec
        return Foreign(functools.partial(_accumulate, own, expected), better)
    name, family = kinds[0].__name__, kinds[0].__module__.split(".")[1]
    _check_family(name, family)
    check_arguments(f"{name}.update", spec.update, ARGUMENTS)
    task = next((task for task in TASKS if name.lower().startswith(task)), None)
    classes = getattr(spec, "num_classes", None)
    expected = _expected(name, family, task, classes)
    function = functools.partial(_accumulate, copy.deepcopy(spec), expected)
    return Foreign(function, better, least_value(name))


def from_torchmetrics(spec: Callable[..., object]) -> Foreign:
    """Return a function of `torchmetrics.functional` as a metric.

    Raises:
        ConfigError: if it is no function of predictions and targets alone.
    """
    inner, given = unwrapped(spec), keywords(spec)
    name, family = inner.__name__, inner.__module__.split(".")[2]
    _check_family(name, family)
    check_arguments(f"torchmetrics' {name}", spec, ARGUMENTS)
    task, title = name.split("_")[0], name
    if task not in TASKS:
        task = given.get("task")
        title = f"{task}{name}"
    expected = _expected(name, family, task, given.get("num_classes"))
    better = _direction(family, name if family == "regression" else title)
    function = functools.partial(_call, spec, expected)
    return Foreign(function, better, least_value(name))


def _is_theirs(kind: type) -> bool:
    return kind.__module__.startswith("torchmetrics.")


def _check_family(name: str, family: str) -> None:
    if family == "collections":
        raise ConfigError(
            f"a {name} returns a dictionary of values, but a metric is one number: "
            f"pass one of its metrics"
        )
    if family not in FAMILIES:
        raise ConfigError(
            f"torchmetrics' {name} is of {family}, and only metrics of "
            f"{' and '.join(FAMILIES)} compare predictions with targets alone: {WRAP}"
        )


def _expected(
    name: str, family: str, task: str | None, classes: int | None
) -> Expected:
    """Return what a metric of torchmetrics expects, by its task."""
    plain = name.lower().replace("_", "")
    if plain in ENSEMBLES:
        raise ConfigError(f"{name} compares several predictions of a number: {WRAP}")
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


def _call(
    function: Callable[..., object],
    expected: Expected,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
) -> object:
    return function(*expected.of(meaning, outputs, targets))


def _accumulate(
    metric: Any,
    expected: Expected,
    meaning: Meaning | None,
    outputs: Tensor,
    targets: Tensor,
) -> object:
    given, truth = expected.of(meaning, outputs, targets)
    if isinstance(metric, nn.Module):
        metric.to(given.device)
    metric.reset()
    metric.update(given, truth)
    return metric.compute()
