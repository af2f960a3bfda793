"""Lovasz hinge: a convex surrogate of the Jaccard index for one logit."""

import torch
from torch import Tensor

from baselines.losses.contract import LOSSES
from baselines.losses.lovasz_extension import lovasz_extension
from metricopt.errors import ShapeError
from metricopt.losses.contract import check_arguments


@LOSSES.register("lovasz-hinge")
def lovasz_hinge_loss(outputs: Tensor, targets: Tensor) -> Tensor:
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
    return lovasz_hinge(outputs[:, 0], targets, per_image=False)


def lovasz_hinge(
    logits: Tensor,
    labels: Tensor,
    *,
    per_image: bool = True,
    ignore: int | None = None,
) -> Tensor:
    """Return the Lovasz hinge of labelled images or sets.

    Args:
        logits: logits of the positive class, shape [B, ...].
        labels: 0 or 1, or `ignore`, shape [B, ...].
        per_image: average over one set per row; otherwise all elements are one set.
        ignore: label of elements to leave out; None leaves out nothing.

    Returns:
        Scalar in [0, inf); an empty set counts 0.

    Raises:
        ShapeError: if logits and labels differ in shape.

    Source: Berman et al., CVPR 2018; Yu and Blaschko, ICML 2015. Differs: nothing.
    """
    if logits.shape != labels.shape:
        raise ShapeError(
            f"lovasz_hinge needs logits and labels of one shape, got "
            f"{list(logits.shape)} and {list(labels.shape)}"
        )
    if per_image:
        return torch.stack(
            [_hinge_of_set(*pair, ignore) for pair in zip(logits, labels, strict=True)]
        ).mean()
    return _hinge_of_set(logits, labels, ignore)


def _hinge_of_set(logits: Tensor, labels: Tensor, ignore: int | None) -> Tensor:
    logits, labels = logits.flatten(), labels.flatten()
    if ignore is not None:
        kept = labels != ignore
        logits, labels = logits[kept], labels[kept]
    foreground = labels == 1
    errors = (1.0 - torch.where(foreground, logits, -logits)).relu()
    return lovasz_extension(errors[:, None], foreground[:, None])[0]
