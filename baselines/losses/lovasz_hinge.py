"""Lovasz hinge: a convex surrogate of the Jaccard index for one logit.

Source: Berman et al., CVPR 2018; Yu and Blaschko, ICML 2015. Differs: the mini-batch is
one set; images apart and elements to ignore are not offered.
"""

import torch
from torch import Tensor

from baselines.losses.contract import LOSSES
from baselines.losses.lovasz_extension import lovasz_extension
from metricopt.errors import ShapeError
from metricopt.losses.contract import check_arguments


@LOSSES.register("lovasz-hinge")
def lovasz_hinge(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the Lovasz hinge of one mini-batch, taken as one set.

    Args:
        outputs: logits of the positive class, shape [N, 1].
        targets: labels, shape [N], integers in {0, 1}.

    Returns:
        Scalar in [0, inf).

    Raises:
        ShapeError: if outputs are not [N, 1] with the N of the targets.
        DataError: if there is no example, or a label is not 0 or 1.
    """
    check_arguments(outputs, targets)
    if outputs.shape[1] != 1:
        raise ShapeError(
            f"lovasz-hinge needs one logit, outputs [N, 1], got {list(outputs.shape)}"
        )
    foreground = targets[:, None] == 1
    errors = (1.0 - torch.where(foreground, outputs, -outputs)).relu()
    return lovasz_extension(errors, foreground)[0]
