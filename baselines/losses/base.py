"""The contract of a surrogate loss, and the one check of its arguments."""

from collections.abc import Callable

from torch import Tensor

from metricopt.errors import DataError, ShapeError
from metricopt.registry import Registry

Loss = Callable[[Tensor, Tensor], Tensor]
"""Outputs [N, C] (C = 1 is one logit) and labels [N] to a scalar to be minimised."""

LOSSES: Registry[Loss] = Registry("loss")


def check_arguments(outputs: Tensor, targets: Tensor) -> None:
    """Check that outputs [N, C] and integer labels [N] go together.

    Raises:
        ShapeError: if the shapes do not; the message names both.
        DataError: if there is no example, or a label is not one of the classes.
    """
    if outputs.ndim != 2 or tuple(targets.shape) != (len(outputs),):
        raise ShapeError(
            f"a loss needs outputs [N, C] and targets [N], got outputs "
            f"{list(outputs.shape)} and targets {list(targets.shape)}"
        )
    if len(outputs) == 0:
        raise DataError("a loss needs at least one example, got 0")
    classes = max(outputs.shape[1], 2)
    low, high = targets.aminmax()
    if targets.is_floating_point() or low < 0 or high >= classes:
        raise DataError(
            f"a loss on {outputs.shape[1]} outputs needs integer targets in "
            f"[0, {classes - 1}], got {targets.dtype} from {low.item()} to "
            f"{high.item()}"
        )
