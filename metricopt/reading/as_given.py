"""What metrics of other packages are given, and outputs that are perfect or wrong."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.reading.meaning import Meaning

SURE_LOGIT = 10.0
"""Logit of a sure prediction: its probability differs from 1 by less than 5e-5."""


def implied_meaning(outputs: Tensor, targets: Tensor) -> Meaning:
    """Return what logits [N, C] mean by the shape of their targets alone."""
    several = targets.ndim == 2 and outputs.shape[1] > 1
    return Meaning("logits", "multi-label" if several else "labels")


def one_by_one(
    meaning: Meaning, outputs: Tensor, targets: Tensor, *, leading: int = 1
) -> tuple[Tensor, Tensor]:
    """Return outputs and targets as rows; of dense ones, those that are not ignored.

    Args:
        meaning: meaning of the outputs.
        outputs: in the form of methods, [N, C, ...] after other axes.
        targets: shape [N, ...] with one target for all C, or [N, C, ...].
        leading: axes of outputs up to and including that of the examples.

    Returns:
        Outputs [..., M, C] with targets [M], or [M, C].
    """
    each = targets.ndim == outputs.ndim - leading + 1 and outputs.shape[leading] > 1
    if not meaning.is_dense:
        return outputs, targets if each else targets.flatten()
    columns = outputs.movedim(leading, -1).flatten(leading - 1, -2)
    if each:
        return columns, targets.movedim(1, -1).flatten(0, -2)
    flat = targets.flatten()
    if meaning.truth == "numbers" or meaning.ignored is None:
        return columns, flat
    counted = flat.ne(meaning.ignored)
    return columns[..., counted.to(columns.device), :], flat[counted]


def probabilities(meaning: Meaning, outputs: Tensor) -> Tensor:
    """Return the probabilities of all classes, float64.

    In double precision, so that confident scores do not become ties.

    Args:
        meaning: meaning of the outputs.
        outputs: in the form of methods, shape [M, C].

    Returns:
        Shape [M, max(C, 2)] where targets are one label each, [M, C] where several.
    """
    outputs = outputs.double()
    if meaning.truth == "multi-label":
        return outputs.sigmoid()
    if outputs.shape[1] == 1:
        return torch.cat([torch.sigmoid(-outputs), torch.sigmoid(outputs)], 1)
    return outputs.sigmoid() if meaning.link == "sigmoid" else outputs.softmax(1)


def perfect_outputs(meaning: Meaning, outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the outputs of a network that is always right, in the form of methods.

    Args:
        meaning: meaning of the outputs; its targets are labels, several labels, or
            numbers.
        outputs: outputs of some examples, in the form of methods, [n, C, ...]; they
            give C and the type.
        targets: targets of all examples.
    """
    classes = outputs.shape[1]
    each = targets.ndim == outputs.ndim
    if meaning.truth == "numbers":
        return (targets if each else targets[:, None]).to(outputs)
    if meaning.truth == "multi-label" or classes == 1:
        hits = (targets if each else targets[:, None]) == 1
    else:
        labels = targets.long().clamp(0, classes - 1)  # ignored ones may be negative
        hits = one_hot(labels, classes).movedim(-1, 1) == 1
    return SURE_LOGIT * (2 * hits.to(outputs) - 1)
