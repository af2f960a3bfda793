"""Non-maximum suppression of many small groups at once."""

import torch
from torch import Tensor

SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Boxes of a group up to which groups are padded and compared together."""
COMPARED_AT_ONCE = 2**19
"""Pairs of boxes in memory at a time."""


def suppressed(box: Tensor, score: Tensor, group: Tensor, overlap: float) -> Tensor:
    """Return which boxes remain, from the surest on, int64, shape [K].

    From the surest on, a box is kept unless it overlaps a kept one of its group. The
    result is that of `torchvision.ops.batched_nms`, which walks through the groups one
    by one; an image has a group for every class, and a metric query thousands.

    Args:
        box: x1, y1, x2, y2, shape [D, 4].
        score: shape [D].
        group: boxes of different groups never suppress each other, int64, shape [D].
        overlap: intersection over union above which a box is dropped.
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
    low = torch.maximum(box[:, :, None, :2], box[:, None, :, :2])
    high = torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = (box[..., 2:] - box[..., :2]).prod(-1)
    close = shared / (area[:, :, None] + area[:, None, :] - shared) > overlap
    kept = torch.ones_like(area, dtype=torch.bool)
    for at in range(box.shape[1] - 1):
        kept[:, at + 1 :] &= ~(kept[:, at : at + 1] & close[:, at, at + 1 :])
    return kept
