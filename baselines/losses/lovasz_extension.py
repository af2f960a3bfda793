"""The Lovasz extension of the Jaccard loss, shared by the two losses built on it.

Source: Berman et al., CVPR 2018; code by the authors at
https://github.com/bermanmaxim/LovaszSoftmax (pytorch/lovasz_losses.py). Differs:
all classes are sorted in one call, and every floating dtype works.
"""

import torch
from torch import Tensor


def lovasz_extension(errors: Tensor, foreground: Tensor) -> Tensor:
    """Return the Lovasz extension of the Jaccard loss, one value per column.

    Gradients flow through the errors only; the Jaccard increments are constants.
    Ties do not change the value, only how its gradient is shared among them.

    Args:
        errors: how wrong every element is, shape [P, S], at least 0.
        foreground: elements that belong to the class, shape [P, S], bool.

    Returns:
        Extension of each of the S sets, shape [S]; 0 for empty sets (P = 0).
    """
    ordered, order = errors.sort(dim=0, descending=True, stable=True)
    increments = jaccard_increments(foreground.gather(0, order).to(errors.dtype))
    return (ordered * increments).sum(0)


def jaccard_increments(foreground: Tensor) -> Tensor:
    """Return what each element, in this order, adds to the Jaccard loss.

    Args:
        foreground: 1 for elements of the class, else 0, worst first, shape [P, S].

    Returns:
        J_i - J_(i-1) with J_0 = 0 and J_i the Jaccard loss when the first i elements
        are wrong and all others right, shape [P, S].
    """
    total = foreground.sum(0)
    intersection = total - foreground.cumsum(0)
    union = total + (1.0 - foreground).cumsum(0)
    jaccard = 1.0 - intersection / union
    return torch.cat([jaccard[:1], jaccard.diff(dim=0)])
