"""Non-maximum suppression of many small groups at once."""

import torch
from torch import Tensor

SIZES = (3, 6, 12, 24, 48, 96)
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
