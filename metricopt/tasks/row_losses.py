"""Losses of many rows of phi at once, each on examples of its own."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.errors import LossError, described
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Outputs, Targets

Loss = Callable[[Any, Any], Tensor]
"""From outputs and targets of n examples to a scalar, differentiable."""
RowLosses = Callable[[Outputs, Targets], Tensor]
"""From outputs [B, n, C] and targets [B, n] to the loss of each row, [B]."""
_Batched = Callable[[Tensor, Tensor], Tensor]
NARROW = (torch.uint8, torch.int8, torch.int16, torch.int32)
"""Kinds of labels that losses of torch do not take."""


def batched_loss(loss: Loss) -> RowLosses:
    """Return the loss of each row: outputs [B, n, C], targets [B, n] -> [B].

    A mean-reduced torch loss is called once without reduction, which is many times
    faster than a call per row. A loss with a method `row_losses` is called once, too.
    Any other loss is called row by row, and so is every loss if outputs are a tuple or
    targets are no tensor. It gets copies of its own, which it may change. Labels of any
    whole type become int64.

    Raises:
        LossError: from the function that is returned, if a loss called row by row
            returns no scalar.
    """
    at_once = _at_once(loss)

    def row_losses(outputs: Outputs, targets: Targets) -> Tensor:
        if isinstance(targets, Tensor) and targets.dtype in NARROW:
            targets = targets.long()
        tensors = isinstance(outputs, Tensor) and isinstance(targets, Tensor)
        if at_once is not None and tensors:
            return at_once(outputs, targets)  # type: ignore[arg-type]
        pairs = zip(_copied_rows(outputs), _copied_rows(targets), strict=True)
        return torch.stack([_row_loss(loss, *pair) for pair in pairs])

    return row_losses


class NativeLoss:
    """A user's loss of outputs as a network returns them, of those of methods."""

    def __init__(self, loss: Loss, meaning: Meaning) -> None:
        self._loss, self._meaning = loss, meaning
        self._rows = batched_loss(loss)

    def __call__(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the loss of outputs [n, C] and targets [n]."""
        meaning = self._meaning
        return self._loss(meaning.outward(outputs), meaning.outward_targets(targets))

    def row_losses(self, outputs: Outputs, targets: Targets) -> Tensor:
        """Return the losses [B] of outputs [B, n, C] and targets [B, n]."""
        given = self._meaning.outward_targets(targets, leading=2)
        return self._rows(self._meaning.outward(outputs, leading=2), given)


def loss_name(loss: Loss) -> str:
    """Return the name of a loss: that of its function or class."""
    function = getattr(loss, "func", loss)  # of a `functools.partial`
    return getattr(function, "__name__", type(function).__name__)


def _copied_rows(values: Outputs | Targets) -> Iterator[Any]:
    """Yield copies of all rows, so that a loss may change what it is given.

    Views of one tensor would count their changes together. Objects are those of the
    data set, and may be in a mini-batch twice.
    """
    if isinstance(values, Tensor):
        yield from torch.unbind_copy(values)  # type: ignore[func-returns-value,misc]
    elif isinstance(values, tuple):
        yield from zip(*map(torch.unbind_copy, values), strict=True)
    else:
        for row in values:
            yield [copy.deepcopy(target) for target in row]


def _row_loss(loss: Loss, outputs: Outputs, targets: Any) -> Tensor:
    """Return the loss of one row, a scalar."""
    value: object = loss(outputs, targets)
    if isinstance(value, Tensor) and value.ndim == 0 and value.is_floating_point():
        return value
    several = isinstance(value, Tensor) and value.numel() > 1
    raise LossError(
        f"the loss {loss_name(loss)} must return a scalar tensor, got "
        f"{described(value)}{'; take the mean of it' if several else ''}"
    )


def _at_once(loss: Loss) -> _Batched | None:
    # A subclass may mean something else; class weights enter the divisor of the mean.
    plain = type(loss) in (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss)
    if plain and loss.reduction == "mean" and loss.weight is None:  # type: ignore[attr-defined]
        return _elementwise(loss)  # type: ignore[arg-type]
    found: _Batched | None = getattr(loss, "row_losses", None)
    return found


def _elementwise(loss: nn.CrossEntropyLoss | nn.BCEWithLogitsLoss) -> _Batched:
    per_example = copy.copy(loss)
    per_example.reduction = "none"

    def row_means(outputs: Tensor, targets: Tensor) -> Tensor:
        flat_outputs, flat_targets = outputs.flatten(0, 1), targets.flatten(0, 1)
        if isinstance(per_example, nn.BCEWithLogitsLoss):
            # The labels of single logits may be [n] for [n, 1], and integers.
            flat_targets = flat_targets.reshape(flat_outputs.shape).to(flat_outputs)
        values: Tensor = per_example(flat_outputs, flat_targets)
        counted = torch.ones_like(values, dtype=torch.bool)
        labels = not flat_targets.is_floating_point()
        if labels and isinstance(per_example, nn.CrossEntropyLoss):
            counted = flat_targets.ne(per_example.ignore_index)
        count = len(outputs)
        return values.view(count, -1).sum(1) / counted.view(count, -1).sum(1)

    return row_means


class LossesInParts(torch.autograd.Function):
    """Losses and gradients of a few rows at a time: activations stay in the cache.

    Rows do not share a loss, so the gradients of one part are computed before the next
    part begins. The graph of all rows is never held, so second derivatives are refused
    with LossError.
    """

    @staticmethod
    def forward(
        ctx: Any,
        phi: Tensor,
        index: Tensor,
        rows: int,
        losses: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """Return the losses [B] of phi [B, d] on the examples at index [B, n].

        `losses` gives those of so many rows of phi at a time, on their examples.
        """
        values, gradients = [], []
        for part, drawn in zip(phi.split(rows), index.split(rows), strict=True):
            with torch.enable_grad():
                part = part.detach().requires_grad_()
                found = losses(part, drawn)
                gradients += torch.autograd.grad(found.sum(), part)
            values.append(found.detach())
        ctx.save_for_backward(torch.cat(gradients))
        return torch.cat(values)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients with respect to the arguments of `forward`."""
        if torch.is_grad_enabled():  # with create_graph=True
            raise LossError(
                "second derivatives were asked for, and losses that are computed a few "
                "rows at a time have none: use fewer rows, or order='first'"
            )
        (gradients,) = ctx.saved_tensors
        return upstream[:, None] * gradients, None, None, None
