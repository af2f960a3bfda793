"""Which detections are right: matched to objects by the rules of the benchmarks.

Boxes are continuous: pixel 1 of the annotations of PASCAL VOC reaches from 0 to 1. The
widths of its development kit, which add 1 to 1-based pixels, are then plain ones.
"""

from typing import Literal

import torch
from torch import Tensor

from metricopt.detection.detections import Detections, rank_within
from metricopt.detection.packed import present

Rule = Literal["voc", "coco"]
HIT, ALARM, IGNORED = 1, 0, -1
COMPARED_AT_ONCE = 2**18
"""Detections whose overlaps are in memory at a time."""


def matched(
    found: Detections, truths: Tensor, *, overlap: float = 0.5, rule: Rule = "voc"
) -> Tensor:
    """Return what every detection is: `HIT`, `ALARM` or `IGNORED`, int8, shape [D].

    "voc": a detection is compared with the object of its class it overlaps most. It
    hits if the overlap is above the threshold and no surer detection did; a difficult
    object makes it ignored. "coco": from the surest on, it takes the object it overlaps
    most of those that nothing took, from the threshold on; difficult ones, taken any
    number of times, only if there is no other.

    Args:
        found: detections in M images.
        truths: objects of the images, shape [M, G, 6].
        overlap: intersection over union, the threshold.
        rule: "voc" or "coco".

    Source: Everingham et al., IJCV 2010, Sec. 4.2; Lin et al., ECCV 2014, and its
    evaluation code. Differs: of equally sure detections the earlier image comes first.
    """
    overlaps = _overlaps(found, truths)
    difficult = truths[found.image, :, 5] > 0
    match = _voc if rule == "voc" else _coco
    return match(found, overlaps, difficult, overlap)


def _overlaps(found: Detections, truths: Tensor) -> Tensor:
    """Return intersections over unions with the objects of the class, [D, G]."""
    parts = [
        _overlaps_of(found.box[part], found.label[part], truths[found.image[part]])
        for part in torch.arange(len(found.box)).split(COMPARED_AT_ONCE)
    ]
    return torch.cat(parts) if parts else truths.new_zeros(0, truths.shape[1])


def _overlaps_of(box: Tensor, label: Tensor, truths: Tensor) -> Tensor:
    overlaps = intersection_over_union(box[:, None], truths[..., :4])[:, 0]
    same = present(truths) & (truths[..., 4] == label[:, None])
    return overlaps.masked_fill(~same, 0.0)


def intersection_over_union(one: Tensor, other: Tensor) -> Tensor:
    """Return overlaps of boxes [..., P, 4] with boxes [..., G, 4], [..., P, G]."""
    first, second = one[..., :, None, :], other[..., None, :, :].to(one)
    low = torch.maximum(first[..., :2], second[..., :2])
    high = torch.minimum(first[..., 2:], second[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (first, second)]
    return shared / (areas[0] + areas[1] - shared).clamp(min=1e-12)


def _voc(
    found: Detections, overlaps: Tensor, difficult: Tensor, threshold: float
) -> Tensor:
    best, place = overlaps.max(1) if overlaps.shape[1] else (overlaps.sum(1), None)
    flags = torch.full_like(found.image, ALARM, dtype=torch.int8)
    if place is None or not len(flags):
        return flags
    near = best > threshold
    hard = near & difficult.gather(1, place[:, None])[:, 0]
    # The surest of those that are nearest to one object.
    asking = (near & ~hard).nonzero()[:, 0]
    asking = asking[found.score[asking].argsort(descending=True, stable=True)]
    objects = (found.image * overlaps.shape[1] + place)[asking]
    asking = asking[objects.argsort(stable=True)]
    first = rank_within(objects.sort(stable=True).values) == 0
    flags[hard] = IGNORED
    flags[asking[first]] = HIT
    return flags


def _coco(
    found: Detections, overlaps: Tensor, difficult: Tensor, threshold: float
) -> Tensor:
    flags = torch.full_like(found.image, ALARM, dtype=torch.int8)
    free = (overlaps >= threshold) & ~difficult
    hard = ((overlaps >= threshold) & difficult).any(1)
    order = found.score.argsort(descending=True, stable=True)
    group = found.image * (int(found.label.max()) + 1 if len(flags) else 1)
    group = group + found.label
    order = order[group[order].argsort(stable=True)]
    rank = rank_within(group[order])
    taken = torch.zeros(
        int(found.image.max()) + 1 if len(flags) else 0,
        overlaps.shape[1],
        dtype=torch.bool,
        device=overlaps.device,
    )
    # The n-th surest detections of all images and classes at once.
    for number in range(int(rank.max()) + 1 if len(flags) else 0):
        own = order[rank == number]
        open_ = free[own] & ~taken[found.image[own]]
        best = overlaps[own].masked_fill(~open_, -1.0).max(1)
        hits = best.values >= 0
        taken[found.image[own][hits], best.indices[hits]] = True
        flags[own[hits]] = HIT
    flags[(flags == ALARM) & hard] = IGNORED
    return flags
