"""From the outputs of regions to detections: thresholds and non-maximum suppression."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.detection.packed import region_outputs

SIZES = (3, 6, 12, 24, 48, 96)
"""Boxes of a group up to which groups are padded and compared together."""
COMPARED_AT_ONCE = 2**19
"""Pairs of boxes in memory at a time."""


def suppressed(box: Tensor, score: Tensor, group: Tensor, overlap: float) -> Tensor:
    """Return which boxes remain, from the surest on, int64, shape [K].

    From the surest on, a box [D, 4] is kept unless its intersection over union with a
    kept one of its group is above `overlap`. The result is that of
    `torchvision.ops.batched_nms`, which walks through the groups one by one; an image
    has a group for every class, and a metric query thousands.
    """
    order = score.argsort(descending=True, stable=True)
    order = order[group[order].argsort(stable=True)]
    _, counts = torch.unique_consecutive(group[order], return_counts=True)
    starts = counts.cumsum(0) - counts
    kept, least = torch.ones_like(order, dtype=torch.bool), 1
    largest = int(counts.max()) if len(counts) else 0
    for size in (*(s for s in SIZES if s < largest), largest):
        # A group of one box loses none.
        chosen = ((counts > least) & (counts <= size)).nonzero()[:, 0]
        for part in chosen.split(max(1, COMPARED_AT_ONCE // max(size, 1) ** 2)):
            places = starts[part][:, None] + torch.arange(size, device=box.device)
            inside = places < (starts + counts)[part][:, None]
            places = places.clamp(max=len(order) - 1)
            remain = _remaining(box[order[places]], overlap)
            kept[places[inside]] = remain[inside]
        least = max(least, size)
    found = order[kept].sort().values
    return found[score[found].argsort(descending=True, stable=True)]


def _remaining(box: Tensor, overlap: float) -> Tensor:
    """Return which boxes of G groups [G, L, 4], the surest first, are kept, [G, L]."""
    # One side after another: pairs of corners take three times as long.
    left, top, right, bottom = (side.contiguous() for side in box.unbind(-1))
    shared = _shared(left, right).mul_(_shared(top, bottom))
    area = (right - left) * (bottom - top)
    union = area[:, :, None] + area[:, None, :] - shared
    apart = ~(shared / union > overlap)  # an empty box overlaps nothing
    kept = torch.ones_like(area, dtype=torch.bool)
    for at in range(box.shape[1] - 1):
        kept[:, at + 1 :] &= apart[:, at, at + 1 :] | ~kept[:, at : at + 1]
    return kept


def _shared(low: Tensor, high: Tensor) -> Tensor:
    """Return the length that each two of L intervals [G, L] share, [G, L, L]."""
    first = torch.maximum(low[:, :, None], low[:, None, :])
    return torch.minimum(high[:, :, None], high[:, None, :]).sub_(first).clamp_(min=0)


SMALLEST = 1e-2
"""Pixels of a side below which a box is none, as in torchvision."""


@dataclass(frozen=True)
class Kept:
    """Which detections a detector returns; torchvision's defaults.

    Attributes:
        score: least score.
        overlap: intersection over union with a better box of the class above which a
            box is dropped.
        most: detections of an image.
    """

    score: float = 0.05
    overlap: float = 0.5
    most: int = 100


USUAL = Kept()


class Detections(NamedTuple):
    """Detections of M images, by image and, within an image, from the surest on.

    Attributes:
        image: place of the image, int64, shape [D].
        label: class of the detection, from 1 on, int64, shape [D].
        score: probability of the class, in [0, 1], shape [D].
        box: x1, y1, x2, y2 in pixels, shape [D, 4].
        region: place of the region it comes from, int64, shape [D].
    """

    image: Tensor
    label: Tensor
    score: Tensor
    box: Tensor
    region: Tensor

    def at(self, index: Tensor) -> "Detections":
        """Return some of them, in another order."""
        return Detections(*(part[index] for part in self))


@torch.no_grad()
def detections(outputs: Tensor, kept: Kept = USUAL) -> Detections:
    """Return what a detector finds in M images, as torchvision's detectors do.

    Raises:
        ShapeError: if outputs are not packed, [M, P, 5 C + 6].
    """
    found = region_outputs(outputs)
    scores = found.logits.softmax(-1)[..., 1:]  # without the background
    wide = (found.boxes[..., 2:] - found.boxes[..., :2]).amin(-1) >= SMALLEST
    chosen = (scores > kept.score) & found.present[..., None] & wide
    image, region, kind = chosen.nonzero(as_tuple=True)
    score, box = scores[chosen], found.boxes[chosen]
    every = Detections(image, kind + 1, score, box, region)
    # Boxes of different images or classes never suppress each other.
    group = image * found.classes + kind
    every = every.at(suppressed(box.float(), score.float(), group, kept.overlap))
    every = every.at(every.image.argsort(stable=True))
    return every.at((rank_within(every.image) < kept.most).nonzero()[:, 0])


def rank_within(groups: Tensor) -> Tensor:
    """Return the place of every entry within its run of equal groups, [D]."""
    places = torch.arange(len(groups), device=groups.device)
    _, counts = torch.unique_consecutive(groups, return_counts=True)
    starts = counts.cumsum(0) - counts
    ranks: Tensor = places - starts.repeat_interleave(counts)
    return ranks
