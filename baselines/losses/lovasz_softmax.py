"""Lovasz-Softmax: a surrogate of the Jaccard index on class probabilities."""

from collections.abc import Sequence

import torch
from torch import Tensor

from baselines.losses.contract import LOSSES
from baselines.losses.lovasz_extension import lovasz_extension
from metricopt.errors import ConfigError, ShapeError
from metricopt.losses.contract import check_arguments

Classes = str | Sequence[int]


@LOSSES.register("lovasz-softmax")
def lovasz_softmax_loss(outputs: Tensor, targets: Tensor) -> Tensor:
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
        return lovasz_softmax(columns, targets, classes="all")
    return lovasz_softmax(outputs.softmax(1), targets)


def lovasz_softmax(
    probabilities: Tensor,
    labels: Tensor,
    *,
    classes: Classes = "present",
    per_image: bool = False,
    ignore: int | None = None,
) -> Tensor:
    """Return the Lovasz-Softmax loss of labelled images or sets.

    Args:
        probabilities: class probabilities, shape [B, C, ...].
        labels: classes in [0, C), or `ignore`, shape [B, ...].
        classes: "present" for those that occur in a set, "all", or the classes to
            average over.
        per_image: average over one set per row; otherwise all elements are one set.
        ignore: label of elements to leave out; None leaves out nothing.

    Returns:
        Scalar in [0, 1]; an empty set counts 0.

    Raises:
        ShapeError: if labels do not have the shape of one class's probabilities.
        ConfigError: if `classes` is none of the three.

    Source: Berman et al., CVPR 2018. Differs: nothing.
    """
    _check_settings(probabilities, labels, classes)
    if per_image:
        pairs = zip(probabilities.split(1), labels.split(1), strict=True)
        return torch.stack(
            [_softmax_of_set(*pair, classes, ignore) for pair in pairs]
        ).mean()
    return _softmax_of_set(probabilities, labels, classes, ignore)


def _check_settings(probabilities: Tensor, labels: Tensor, classes: Classes) -> None:
    shape = list(probabilities.shape)
    if len(shape) < 2 or [shape[0], *shape[2:]] != list(labels.shape):
        raise ShapeError(
            "lovasz_softmax needs probabilities [B, C, ...] and labels [B, ...], got "
            f"{shape} and {list(labels.shape)}"
        )
    known = (
        classes in ("present", "all")
        if isinstance(classes, str)
        else len(classes) > 0 and all(0 <= label < shape[1] for label in classes)
    )
    if not known:
        raise ConfigError(
            f"classes must be 'present', 'all' or class indices in [0, {shape[1] - 1}]"
            f", got {classes!r}"
        )


def _softmax_of_set(
    probabilities: Tensor, labels: Tensor, classes: Classes, ignore: int | None
) -> Tensor:
    columns = probabilities.movedim(1, -1).reshape(-1, probabilities.shape[1])
    labels = labels.reshape(-1)
    if ignore is not None:
        kept = labels != ignore
        columns, labels = columns[kept], labels[kept]
    chosen = torch.arange(columns.shape[1], device=columns.device)
    if not isinstance(classes, str):
        chosen = torch.as_tensor(classes, device=columns.device)
    foreground = labels[:, None] == chosen
    errors = (foreground.to(columns.dtype) - columns[:, chosen]).abs()
    losses = lovasz_extension(errors, foreground)
    if classes != "present":
        return losses.mean()
    present = foreground.any(0)
    return (losses * present).sum() / present.sum().clamp(min=1)
