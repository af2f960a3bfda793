"""Checks of the labels and outputs that a metric is given."""

import torch
from torch import Tensor

from metricopt.errors import DataError, MetricError
from metricopt.reading.outputs import Targets


def check_labels(name: str, targets: Targets, classes: int) -> None:
    """Refuse targets that are not integer labels of `classes` classes.

    Args:
        name: metric, for the message.
        targets: labels, shape [N], N > 0.
        classes: number of classes, 2 for a single logit.

    Raises:
        DataError: if targets are not [N] integers in [0, classes).
    """
    labels = check_integers(name, targets)
    low, high = (int(bound) for bound in labels.aminmax())
    if low < 0 or high >= classes:
        raise DataError(
            f"metric {name!r} needs labels in [0, {classes - 1}], "
            f"got labels from {low} to {high}"
        )


def check_integers(name: str, targets: Targets) -> Tensor:
    """Return the targets, which have to be integer labels of whatever classes.

    Args:
        name: metric, for the message.
        targets: labels, shape [N].

    Raises:
        DataError: if targets are not [N] integers.
    """
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
    """Refuse outputs with NaN, which would count as a prediction of class 0.

    Args:
        name: metric, for the message.
        outputs: network outputs, any shape.

    Raises:
        MetricError: if there is a NaN.
    """
    # The maximum of a tensor with NaN is NaN; it is far cheaper than a mask.
    if outputs.numel() and bool(torch.isnan(outputs.amax())):
        raise MetricError(f"metric {name!r} was given outputs with NaN")


def is_integer(targets: Tensor) -> bool:
    """Return whether targets are whole numbers."""
    kinds = targets.is_floating_point() or targets.is_complex()
    return not kinds and targets.dtype != torch.bool
