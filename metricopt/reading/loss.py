"""Before any query: a loss on one mini-batch, and the range of its targets."""

import math
import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt.errors import DataError, LossError, MetricOptError, described, said
from metricopt.reading.layout import ignored_label
from metricopt.reading.meaning import OF_LOGITS, OF_SHARES, PLAIN, Meaning
from metricopt.reading.outputs import Outputs, Targets, are_labels
from metricopt.tasks.row_losses import Loss, RowLosses, loss_name

BROADCAST = "Using a target size"
"""How torch begins a warning of outputs and targets that are broadcast."""
WRONG_SHAPE = (RuntimeError, TypeError, ValueError, LookupError, AssertionError)
"""What a loss may raise of targets in another shape."""


def require_loss(loss: object) -> None:
    """Raise LossError for a loss that is a class, or nothing that can be called."""
    if isinstance(loss, type):
        raise LossError(
            f"the loss must be a function or an object, got {described(loss)}: pass "
            f"{loss.__name__}()"
        )
    if not callable(loss):
        raise LossError(
            f"the loss must be a function of outputs and targets, got {described(loss)}"
        )


def check_loss(
    losses: RowLosses,
    outputs: Outputs,
    targets: Targets,
    phi: Tensor,
    *,
    name: str,
    meaning: Meaning = PLAIN,
) -> None:
    """Call a loss once on a mini-batch, and check its value and its gradient.

    Outputs [1, n, C] come from phi [1, d], with gradient; targets are [1, n]. LossError
    is raised if it raises, in its backward pass, too, pairs every output with every
    target, or returns anything but one finite number with a finite gradient. The
    message has the shapes that the loss of a user sees, by the meaning of the outputs.
    """
    seen = meaning.outward(outputs, leading=2)
    compared = meaning.outward_targets(targets, leading=2)
    given = f"outputs {_described(seen)} and targets {_described(compared)}"
    found = _called(name, losses, outputs, targets, given)
    if _broadcasts(losses, outputs, targets, found.detach()):
        raise LossError(
            f"the loss {name} must compare every output with its own target, but its "
            f"value on {given} does not depend on their order: they are broadcast; "
            "give both one shape"
        )
    gradient = _gradient(name, found, phi, given) if found.requires_grad else None
    if gradient is None:
        raise LossError(
            f"the loss {name} must be differentiable in the outputs, got a value "
            "without gradient; detach(), item() and argmax() cut it off"
        )
    value, steepest = found.item(), gradient.abs().max().item()
    if not (math.isfinite(value) and math.isfinite(steepest)):
        raise LossError(
            f"the loss {name} must be finite with a finite gradient, got {value:g} "
            f"with gradients up to {steepest:g} for the untouched network on {given}"
        )


def _called(
    name: str, losses: RowLosses, outputs: Outputs, targets: Targets, given: str
) -> Tensor:
    """Return the loss of one mini-batch, shape [1]."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", BROADCAST)
            found: object = losses(outputs, targets)
    except MetricOptError:
        raise
    except Exception as error:  # a user's loss may raise anything
        raise LossError(
            f"the loss {name} must make a scalar of {given}, but raised {said(error)}"
        ) from error
    if isinstance(found, Tensor) and tuple(found.shape) == (1,):
        return found
    raise LossError(
        f"row_losses of {name} must return [B], one loss for each of B = 1 rows, got "
        f"{described(found)}"
    )


def _gradient(name: str, found: Tensor, phi: Tensor, given: str) -> Tensor | None:
    """Return the gradient of a loss [1], None where phi [1, d] has no part in it."""
    try:
        return torch.autograd.grad(found.sum(), phi, allow_unused=True)[0]
    except MetricOptError:
        raise
    except Exception as error:  # a backward pass of the user may raise anything
        raise LossError(
            f"the loss {name} must have a gradient on {given}, but its backward pass "
            f"raised {said(error)}"
        ) from error


def _broadcasts(
    losses: RowLosses, outputs: Outputs, targets: Targets, value: Tensor
) -> bool:
    """Return whether a loss pairs every output with every target, [n, 1] with [n].

    Then it is the same for targets in another order, but not for targets in the shape
    of the outputs.
    """
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        return False
    if outputs.numel() != targets.numel() or outputs.shape == targets.shape:
        return False

    def differs(other: Tensor) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = losses(outputs.detach(), other)
        except (MetricOptError, *WRONG_SHAPE):
            return False
        return not torch.allclose(found, value, rtol=1e-5, atol=0.0)

    aligned = targets.reshape(outputs.shape)
    return differs(aligned) and not differs(targets.roll(1, 1))


def _described(values: Outputs | Targets) -> str:
    """Return dtype and shape of the values of one row, with the range of labels."""
    if isinstance(values, tuple):
        return f"({', '.join(described(part[0]) for part in values)})"
    if not isinstance(values, Tensor):
        return described(values[0])
    row = values[0]
    if row.is_floating_point() or not row.numel():
        return described(row)
    low, high = (int(bound) for bound in row.long().aminmax())
    return f"{described(row)} from {low} to {high}"


OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)
FUNCTIONS = {
    functional.cross_entropy: OF_CLASSES,
    functional.nll_loss: OF_CLASSES,
    functional.binary_cross_entropy_with_logits: OF_SHARES,
    functional.binary_cross_entropy: OF_SHARES,
}
"""The same losses as functions."""
READ_CLASSES = (*OF_LOGITS, *OF_CLASSES, *OF_SHARES)
"""Losses that take outputs for scores of classes."""
NUMBERS = 2**22
"""Targets looked at at a time."""


def reads_classes(loss: object) -> bool:
    """Return whether a loss of torch takes outputs for scores of classes."""
    function = loss.func if isinstance(loss, partial) else loss
    return isinstance(function, READ_CLASSES) or any(
        each is function for each in FUNCTIONS
    )


def check_targets(loss: Loss, outputs: Outputs, targets: Targets, name: str) -> None:
    """Raise DataError for targets out of the range that a loss of torch needs."""
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        return
    greatest = _greatest(loss, outputs.shape[1], targets)
    if greatest is None:
        return
    found = _extremes(targets, ignored_label(loss))
    if not all(0 <= each <= greatest for each in found):
        raise DataError(
            f"the loss {loss_name(loss)} on {outputs.shape[1]} outputs needs targets "
            f"in [0, {greatest}], got {name} targets from {min(found):g} to "
            f"{max(found):g}"
        )


def check_train_labels(
    loss: Loss, outputs: Outputs, train: Targets, meaning: Meaning
) -> None:
    """Raise DataError for train labels [N] that are no classes of outputs [n, C].

    Those that the loss ignores are left out.
    """
    if meaning.truth != "labels" or meaning.is_dense:
        return
    if not isinstance(outputs, Tensor) or not are_labels(train):
        return
    last = max(outputs.shape[1], 2) - 1
    found = _extremes(train, ignored_label(loss))
    if not all(0 <= each <= last for each in found):
        raise DataError(
            f"the train targets must be labels in [0, {last}] like the observe "
            f"targets, got {min(found):g} to {max(found):g}: leave other examples out, "
            "or say outputs='raw' if outputs are no scores of these classes"
        )


def _greatest(loss: Any, classes: int, targets: Tensor) -> int | None:
    """Return the greatest target a loss takes; None if it is not known."""
    function = loss.func if isinstance(loss, partial) else loss
    kinds = next((FUNCTIONS[each] for each in FUNCTIONS if each is function), None)
    if isinstance(function, OF_SHARES) or kinds == OF_SHARES:
        return 1
    whole = not targets.is_floating_point() and not targets.is_complex()
    if whole and (isinstance(function, OF_CLASSES) or kinds == OF_CLASSES):
        return classes - 1
    return None


def _extremes(targets: Tensor, ignored: int) -> list[float]:
    """Return least and greatest targets of parts, without those that are ignored."""
    found: list[float] = []
    for part in targets.split(max(1, NUMBERS // max(1, targets[0].numel()))):
        values = part if part.is_floating_point() else part.long()
        kept = values[values != ignored]
        if kept.numel():
            found += torch.stack(kept.aminmax()).tolist()
    return found
