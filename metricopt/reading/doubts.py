"""What looks wrong with targets, in a sentence: they may not be read as was meant."""

from torch import Tensor

from metricopt.errors import described
from metricopt.reading.layout import void_doubt
from metricopt.reading.outputs import are_shares

MIXED = (
    "targets hold labels beside other numbers, and only the loss and a metric of your "
    "own can read them: give the labels as targets and the rest as columns, observe=("
    "inputs, labels, {'amount': amounts}); if all are predicted, say outputs='values'."
)
"""What is doubtful in targets that are labels and, say, amounts."""


def are_mixed(targets: Tensor, classes: int) -> bool:
    """Return whether some columns of targets [N, C] are labels, and others are none."""
    if targets.ndim != 2 or classes == 1 or len(targets) < 2:
        return False
    numbers = targets.double()
    low, high = numbers.amin(0), numbers.amax(0)
    whole = (numbers == numbers.round()).all(0) & (low >= 0) & (high < classes)
    labels = whole & (high > low)
    return bool(labels.any() & ~whole.all())


ONE_HOT = (
    "targets have one label in every row, and outputs sum to 1 in every row, like "
    "one-hot classes and a softmax, but every label is decided by itself: for one "
    "class per example, give targets.argmax(1)."
)
"""What is doubtful in targets that are one-hot, beside the outputs of a softmax."""


def _are_one_hot(outputs: Tensor, targets: Tensor) -> bool:
    """Return whether rows [N, C] of targets and of outputs in [0, 1] all sum to 1."""
    single = outputs.ndim == 2 and are_shares(outputs, 1)
    return single and bool((targets.sum(1) == 1).all())


def doubt_of(
    outputs: Tensor, targets: Tensor, classes: int, truth: str, same: bool
) -> str:
    """Return a sentence if targets look like other labels than they are read as."""
    if truth == "multi-label" and _are_one_hot(outputs, targets):
        return ONE_HOT
    if truth != "other" or same or targets.is_complex() or not targets.numel():
        return ""
    if targets.is_floating_point() and (unknown := int(targets.isnan().sum())):
        return (
            f"targets hold NaN, {unknown} of {targets.numel()}: leave these examples "
            "out."
        )
    void = void_doubt(targets, classes) if outputs.ndim > 2 else ""
    if targets.is_floating_point():
        found = misshapen(targets, classes)
        return found and found + void
    low, high = targets.long().aminmax()
    return (
        f"targets are whole numbers from {low} to {high}, no labels of {classes} "
        f"classes, which are 0 to {classes - 1}: only the loss and a metric of your "
        f"own can read them.{void}"
    )


def misshapen(targets: Tensor, classes: int) -> str:
    """Return a sentence if targets, floats or in a column [N, 1], may be labels."""
    numbers = targets.double()
    labels = (numbers == numbers.round()) & (numbers >= 0) & (numbers < classes)
    if not bool(labels.all()):
        return ""
    remedy = "targets[:, 0]" if targets.shape[1:] == (1,) else "targets"
    remedy += ".long()" if targets.is_floating_point() else ""
    return (
        f"targets are {described(targets)}, which only the loss and a metric of your "
        f"own can read: if they are labels, give {remedy}."
    )
