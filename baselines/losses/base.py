"""The contract of a surrogate loss, how one is made, and what is checked."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.registry import Registry

Loss = Callable[[Tensor, Tensor], Tensor]
"""Outputs [N, C] (C = 1 is one logit) and labels [N] to a scalar to be minimised."""


class RowLoss(nn.Module, ABC):
    """A loss with settings, which takes many mini-batches at once.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.

    Attributes:
        outputs_per_class: columns the network gives for every class.
        independent: whether every output is trained by itself, as that of a class
            against the rest, so that its raw values rank examples.
        needs_every_class: whether a mini-batch without some class teaches nothing
            about it, see `check_batch_size`.

    Raises:
        ConfigError: if `classes` is less than 1.
    """

    outputs_per_class = 1
    independent = False
    needs_every_class = False

    def __init__(self, classes: int) -> None:
        super().__init__()
        if classes < 1:
            raise ConfigError(f"a loss needs at least 1 class, got {classes}")
        self.classes = classes

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of one mini-batch, a scalar.

        Args:
            outputs: shape [N, C], or more columns where `outputs_per_class` says so.
            targets: labels, shape [N], integers in [0, max(C, 2)).

        Raises:
            ShapeError: if the shapes do not go together.
            DataError: if there is no example, or a label is not one of the classes.
        """
        check_arguments(outputs, targets, per_class=self.outputs_per_class)
        return self.row_losses(outputs[None], targets[None])[0]

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every mini-batch, shape [B]; labels are not checked.

        Args:
            outputs: as of `forward`, shape [B, n, C].
            targets: labels, shape [B, n].

        Raises:
            ShapeError: if the outputs have another number of columns than expected.
        """
        columns = self.classes * self.outputs_per_class
        if outputs.shape[-1] != columns:
            raise ShapeError(
                f"{type(self).__name__} with classes={self.classes} needs {columns} "
                f"outputs of every example, got {outputs.shape[-1]}"
            )
        return self._row_losses(outputs, targets.long())

    @abstractmethod
    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor: ...


LOSSES: Registry[Loss | type[RowLoss]] = Registry("loss")
"""Functions are losses as they are; classes become one by `make_loss`."""


def make_loss(name: str, *, classes: int, **settings: Any) -> Loss:
    """Return the registered loss called `name`.

    Args:
        name: a name in `LOSSES`.
        classes: number of classes C; 1 is one logit of the positive class.
        **settings: keyword arguments of a loss that is a class.

    Raises:
        ConfigError: if there is no such loss, or it does not know a setting.
    """
    unit = LOSSES.get(name)
    made = isinstance(unit, type)
    known = list(inspect.signature(unit).parameters)[1:] if made else []
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ConfigError(
            f"loss {name!r} has no setting {', '.join(unknown)}; "
            f"known: {', '.join(known) or 'none'}"
        )
    return unit(classes=classes, **settings) if made else unit


def check_batch_size(loss: Loss, batch_size: int, classes: int) -> None:
    """Check that mini-batches can hold every class, where the loss compares classes.

    Raises:
        ConfigError: if they are too small.
    """
    needed = max(classes, 2)
    if getattr(loss, "needs_every_class", False) and batch_size < needed:
        raise ConfigError(
            f"{type(loss).__name__} needs mini-batches of at least {needed} examples, "
            f"one per class, got {batch_size}"
        )


def check_arguments(outputs: Tensor, targets: Tensor, *, per_class: int = 1) -> None:
    """Check that outputs [N, C * per_class] and integer labels [N] go together.

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
    classes = max(outputs.shape[1] // per_class, 2)
    low, high = targets.aminmax()
    if targets.is_floating_point() or low < 0 or high >= classes:
        raise DataError(
            f"a loss on {outputs.shape[1]} outputs needs integer targets in "
            f"[0, {classes - 1}], got {targets.dtype} from {low.item()} to "
            f"{high.item()}"
        )


def one_versus_rest(targets: Tensor, classes: int) -> Tensor:
    """Return which examples are positive for which class.

    Args:
        targets: labels, shape [..., n].
        classes: number of columns C; 1 is the positive class, label 1, alone.

    Returns:
        Whether an example is of a class, bool, shape [..., n, C].
    """
    first = 1 if classes == 1 else 0
    labels = torch.arange(first, first + classes, device=targets.device)
    return targets[..., None] == labels
