"""The contract of a surrogate loss, and what is checked."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError, DataError, ShapeError

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps outputs [N, C] (C = 1: one logit) and labels [N] to a scalar to be minimised."""


@dataclass(frozen=True)
class LossProperties:
    """What a loss asks of a network and of its mini-batches.

    Attributes:
        outputs_per_class: columns that the network gives for every class.
        independent: whether every output is trained by itself, as one class against
            the rest, so that its raw values rank examples.
        needs_every_class: whether a mini-batch without some class teaches nothing
            about it, see `check_batch_size`.
    """

    outputs_per_class: int = 1
    independent: bool = False
    needs_every_class: bool = False


class RowLoss(nn.Module, ABC):
    """A loss with settings, which takes many mini-batches at once.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.

    Attributes:
        properties: what it asks of a network; see the function `properties`.

    Raises:
        ConfigError: if `classes` is less than 1.
    """

    properties: ClassVar[LossProperties] = LossProperties()

    def __init__(self, classes: int) -> None:
        super().__init__()
        if classes < 1:
            raise ConfigError(f"a loss needs at least 1 class, got {classes}")
        self.classes = classes

    def before_step(self, step: int, steps: int) -> None:
        """Prepare a step of training, for losses that change during training.

        Args:
            step: steps taken so far.
            steps: steps of the whole training.
        """

    def finish(self) -> None:
        """Take the form that the loss has at the end of a training."""

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of one mini-batch, a scalar.

        Args:
            outputs: shape [N, C], or more columns where the properties say so.
            targets: labels, shape [N], integers in [0, max(C, 2)).

        Raises:
            ShapeError: if the shapes do not go together.
            DataError: if there is no example, or a label is not one of the classes.
        """
        per_class = self.properties.outputs_per_class
        check_arguments(outputs, targets, per_class=per_class)
        return self.row_losses(outputs[None], targets[None])[0]

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the losses [B] of mini-batches; labels [B, n] are not checked.

        Outputs are as in `forward`, shape [B, n, C].

        Raises:
            ShapeError: if the outputs have another number of columns than expected.
        """
        columns = self.classes * self.properties.outputs_per_class
        if outputs.shape[-1] != columns:
            raise ShapeError(
                f"{type(self).__name__} with classes={self.classes} needs {columns} "
                f"outputs of every example, got {outputs.shape[-1]}"
            )
        return self._row_losses(outputs, targets.long())

    @abstractmethod
    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor: ...


def properties(loss: Loss | type[RowLoss]) -> LossProperties:
    """Return what a loss, or a registered class of losses, asks of a network.

    Plain functions ask for nothing special.
    """
    kind = type(loss) if isinstance(loss, RowLoss) else loss_class(loss)
    return LossProperties() if kind is None else kind.properties


def finish(loss: Loss) -> None:
    """Give a loss the form that it has at the end of a training.

    A trained network is fine-tuned with that form. Most losses never change.
    """
    if isinstance(loss, RowLoss):
        loss.finish()


def check_batch_size(loss: Loss, batch_size: int, classes: int) -> None:
    """Raise ConfigError if a loss needs every class in mini-batches too small."""
    needed = max(classes, 2)
    if properties(loss).needs_every_class and batch_size < needed:
        raise ConfigError(
            f"{type(loss).__name__} needs mini-batches of at least {needed} examples, "
            f"one per class, got {batch_size}"
        )


def loss_class(unit: object) -> type[RowLoss] | None:
    """Return a registered unit if it is a class of losses, None if it is a loss."""
    return unit if isinstance(unit, type) and issubclass(unit, RowLoss) else None


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
    """Return which examples are positive for which class, bool, [..., n, C].

    Of labels [..., n]; a single class is the positive one, label 1, alone.
    """
    first = 1 if classes == 1 else 0
    labels = torch.arange(first, first + classes, device=targets.device)
    return targets[..., None] == labels
