"""From the outputs of regions to detections, and which of them are right.

Thresholds and non-maximum suppression, then matching by the rules of the benchmarks.
Boxes are continuous: pixel 1 of the annotations of PASCAL VOC reaches from 0 to 1. The
widths of its development kit, which add 1 to 1-based pixels, are then plain ones.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.truths import DIFFICULT, are_crowds, single

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

    Outputs are packed, [M, P, 5 C + 6].
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


Rule = Literal["voc", "coco"]
HIT, ALARM, IGNORED = 1, 0, -1
MATCHED_AT_ONCE = 2**18
"""Detections whose overlaps are in memory at a time."""


def matched(
    found: Detections, truths: Tensor, *, overlap: float = 0.5, rule: Rule = "voc"
) -> Tensor:
    """Return what every detection is: `HIT`, `ALARM` or `IGNORED`, int8, shape [D].

    Detections are in M images with objects [M, G, 6]. "voc": a detection is compared
    with the object of its class it overlaps most. It hits if the overlap is above the
    threshold and no surer detection did; a difficult object makes it ignored. "coco":
    from the surest on, it takes the object it overlaps most of those that nothing took,
    from the threshold on; difficult ones, taken any number of times, only if there is
    no other. By both rules, what is neither is ignored if so much of it lies in a crowd
    of its class.

    Source: Everingham et al., IJCV 2010, Sec. 4.2; Lin et al., ECCV 2014, and its
    evaluation code. Differs: of equally sure detections the earlier image comes first.
    """
    crowds = are_crowds(truths)
    overlaps = _overlaps(found, truths, single(truths))
    difficult = truths[found.image, :, 5] == DIFFICULT
    match = _voc if rule == "voc" else _coco
    flags = match(found, overlaps, difficult, overlap)
    if bool(crowds.any()):
        inside = _overlaps(found, truths, crowds, of_box=True) >= overlap
        flags[(flags == ALARM) & inside.any(1)] = IGNORED
    return flags


def _overlaps(
    found: Detections, truths: Tensor, chosen: Tensor, *, of_box: bool = False
) -> Tensor:
    """Return overlaps with the chosen objects [M, G] of the class, [D, G].

    They are intersections over unions, or the shares of the boxes.
    """
    parts = []
    for part in torch.arange(len(found.box)).split(MATCHED_AT_ONCE):
        own, label = truths[found.image[part]], found.label[part]
        box = found.box[part, None]
        overlaps = overlap_of(box, own[..., :4], of_box=of_box)[:, 0]
        same = chosen[found.image[part]] & (own[..., 4] == label[:, None])
        parts.append(overlaps.masked_fill(~same, 0.0))
    return torch.cat(parts) if parts else truths.new_zeros(0, truths.shape[1])


def intersection_over_union(one: Tensor, other: Tensor) -> Tensor:
    """Return overlaps of boxes [..., P, 4] with boxes [..., G, 4], [..., P, G]."""
    return overlap_of(one, other, of_box=False)


def overlap_of(one: Tensor, other: Tensor, *, of_box: bool) -> Tensor:
    """Return what boxes [..., P, 4] share with boxes [..., G, 4], [..., P, G].

    That is a share of both together, or of each of the first.
    """
    first, second = one[..., :, None, :], other[..., None, :, :].to(one)
    low = torch.maximum(first[..., :2], second[..., :2])
    high = torch.minimum(first[..., 2:], second[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (first, second)]
    whole = areas[0] if of_box else areas[0] + areas[1] - shared
    return shared / whole.clamp(min=1e-12)


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
