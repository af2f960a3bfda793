"""The range of targets, where the loss is one of torch that needs one."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt.errors import DataError
from metricopt.reading.decision import OF_SHARES, ignored_label
from metricopt.reading.outputs import Outputs, Targets
from metricopt.tasks.row_losses import Loss, loss_name

OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)
FUNCTIONS = {
    functional.cross_entropy: OF_CLASSES,
    functional.nll_loss: OF_CLASSES,
    functional.binary_cross_entropy_with_logits: OF_SHARES,
    functional.binary_cross_entropy: OF_SHARES,
}
"""The same losses as functions."""
NUMBERS = 2**22
"""Targets looked at at a time."""


def check_targets(loss: Loss, outputs: Outputs, targets: Targets, name: str) -> None:
    """Check that targets are in the range a loss of torch needs.

    Args:
        loss: any; no range is known of others than those of torch.
        outputs: outputs of some examples, shape [n, C, ...].
        targets: targets of all examples of a split.
        name: name of the split.

    Raises:
        DataError: if one is outside; the message has both ranges.
    """
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
