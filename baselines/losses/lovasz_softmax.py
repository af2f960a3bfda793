"""Lovasz-Softmax: a surrogate of the Jaccard index on class probabilities.

Source: Berman et al., CVPR 2018. Differs: the mini-batch is one set; images apart and
elements to ignore are not offered.
"""

import torch
from torch import Tensor

from baselines.losses.contract import LOSSES
from baselines.losses.lovasz_extension import lovasz_extension
from metricopt.losses.contract import check_arguments


@LOSSES.register("lovasz-softmax")
def lovasz_softmax(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the Lovasz-Softmax loss of one mini-batch, taken as one set.

    One logit stands for the two columns (1 - p, p), and both count. With class logits,
    classes that do not occur in the mini-batch are skipped.

    Args:
        outputs: one logit of the positive class, shape [N, 1], or class logits
            [N, C].
        targets: labels, shape [N], integers in [0, max(C, 2)).

    Returns:
        Scalar in [0, 1].

    Raises:
        ShapeError: if the shapes do not go together.
        DataError: if there is no example, or a label is not one of the classes.
    """
    check_arguments(outputs, targets)
    if outputs.shape[1] == 1:
        columns = torch.cat([(-outputs).sigmoid(), outputs.sigmoid()], dim=1)
        return class_losses(columns, foreground(columns, targets)).mean()
    own = foreground(outputs, targets)
    losses, present = class_losses(outputs.softmax(1), own), own.any(0)
    return (losses * present).sum() / present.sum()


def foreground(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return which example is of which class, bool, shape [N, C] of the outputs."""
    return targets[:, None] == torch.arange(outputs.shape[1], device=outputs.device)


def class_losses(probabilities: Tensor, own: Tensor) -> Tensor:
    """Return the loss of every class, shape [C].

    Args:
        probabilities: probabilities of the classes, shape [N, C].
        own: which example is of which class, bool, shape [N, C].
    """
    errors = (own.to(probabilities.dtype) - probabilities).abs()
    return lovasz_extension(errors, own)
