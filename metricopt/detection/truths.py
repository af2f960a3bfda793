"""The objects of images: boxes with their classes, as one tensor."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import DataError

COLUMNS = 6
"""Numbers of an object: its box x1, y1, x2, y2, its label, and what is special of it.

Labels begin at 1; rows of zeros fill up images with fewer objects.
"""
DIFFICULT, CROWD = 1, 2
"""What may be special of an object, which then does not count: it is hard to see, as
PASCAL VOC marks it, or a crowd of many, as COCO does."""


def pack_truths(targets: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the objects of N images as one tensor, float32, shape [N, G, 6].

    Args:
        targets: a mapping for every image, as torchvision's detectors take it:
            `boxes` [n, 4] in pixels from corner to corner, `labels` [n] from 1 on, and,
            if there are any, `difficult` [n] and `iscrowd` [n]. An `area` [n] has no
            part in the metrics here, which are those of objects of all sizes.

    Raises:
        DataError: if there is no image, shapes do not go together, a label is no class,
            or a box has no area; the message names the image. Also if no box is larger
            than a pixel, as where they are shares of the image.
    """
    if not len(targets):
        raise DataError("detection needs at least one image, got none")
    parts = [_packed(target, place) for place, target in enumerate(targets)]
    found = torch.zeros(len(parts), max(1, *map(len, parts), 1), COLUMNS)
    for row, part in zip(found, parts, strict=True):
        row[: len(part)] = part
    if bool(present(found).any()) and float(found[..., :4].abs().max()) <= 1:
        raise DataError(
            "boxes must be x1, y1, x2, y2 in pixels, but all of them lie within a "
            "pixel: multiply them by the width and height of their images"
        )
    return found


def are_truths(targets: object) -> bool:
    """Return whether targets are the objects of images, as `pack_truths` gives them."""
    return isinstance(targets, Tensor) and targets.shape[2:] == (COLUMNS,)


def present(truths: Tensor) -> Tensor:
    """Return which rows of objects [..., G, 6] are objects, bool, [..., G]."""
    return truths[..., 4] > 0


def counted(truths: Tensor) -> Tensor:
    """Return which rows of objects [..., G, 6] count: those with nothing special."""
    return present(truths) & (truths[..., 5] == 0)


def are_crowds(truths: Tensor) -> Tensor:
    """Return which rows of objects [..., G, 6] are crowds, bool, [..., G]."""
    return present(truths) & (truths[..., 5] == CROWD)


def single(truths: Tensor) -> Tensor:
    """Return which rows of objects [..., G, 6] are single objects, bool, [..., G]."""
    return present(truths) & (truths[..., 5] != CROWD)


def _packed(target: Mapping[str, Any], place: int) -> Tensor:
    missing = {"boxes", "labels"} - set(target)
    if missing:
        raise DataError(
            f"the target of image {place} needs boxes and labels, got "
            f"{', '.join(target) or 'nothing'}"
        )
    boxes = torch.as_tensor(target["boxes"], dtype=torch.float32).cpu()
    labels = torch.as_tensor(target["labels"]).cpu()
    if len(labels) == 0:
        return torch.zeros(0, COLUMNS)
    if boxes.shape != (len(labels), 4):
        raise DataError(
            f"image {place} needs boxes [n, 4] and labels [n], got "
            f"{list(boxes.shape)} and {list(labels.shape)}"
        )
    special = _special(target, labels, place)
    if labels.is_floating_point() or labels.min() < 1:
        raise DataError(
            f"image {place} needs integer labels from 1 on, as 0 is the background, "
            f"got {labels.dtype} from {labels.min().item()}"
        )
    area = (boxes[:, 2:] > boxes[:, :2]).all(1)
    wrong = ~(area & boxes.isfinite().all(1))
    if bool(wrong.any()):
        box = boxes[int(wrong.nonzero()[0])].tolist()
        raise DataError(
            f"image {place} needs boxes x1, y1, x2, y2 with an area, got {box}"
        )
    return torch.cat([boxes, torch.stack([labels, special], 1).float()], 1)


def _special(target: Mapping[str, Any], labels: Tensor, place: int) -> Tensor:
    """Return what is special of the objects of an image, int64, [n]."""
    special = torch.zeros(len(labels), dtype=torch.int64)
    for name, what in (("difficult", DIFFICULT), ("iscrowd", CROWD)):
        given = torch.as_tensor(target.get(name, torch.zeros(len(labels)))).cpu()
        if given.shape != labels.shape:
            raise DataError(
                f"image {place} needs {name} [n] like its labels, got "
                f"{list(given.shape)} and {list(labels.shape)}"
            )
        special[given > 0] = what
    return special
