"""A picture of retrieval: queries with their nearest images, before and after."""

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.pictures import jpeg
from metricopt.process.seeding import make_generator

NEIGHBOURS = 4
EACH = 3
"""Queries whose nearest image becomes right, and whose nearest becomes wrong."""
THUMBNAIL = 64
"""Pixels of a side."""


def pictured(images: Photographs, before: Tensor, after: Tensor) -> Mapping[str, Any]:
    """Return notes of queries whose nearest image changes from right to wrong, or back.

    The queries are drawn by a fixed seed, not chosen.

    Args:
        images: the N images.
        before: embeddings of the untouched network, shape [N, E].
        after: embeddings of a result, shape [N, E].

    Returns:
        `picture_jpeg`: one line of thumbnails per query, itself first, then the nearest
        images before and after, as base64; `picture_right`: whether these are of its
        class; `picture_counts`: of all queries how many become right, and wrong.
    """
    targets = images.targets.cpu()
    nearest = [_nearest(part) for part in (before, after)]
    right = [targets[places] == targets[:, None] for places in nearest]
    became = [right[1][:, 0] & ~right[0][:, 0], right[0][:, 0] & ~right[1][:, 0]]
    generator = make_generator("picture")
    order = torch.randperm(len(targets), generator=generator)
    queries = torch.cat([order[change[order]][:EACH] for change in became])
    lines = torch.cat([queries[:, None], *(part[queries] for part in nearest)], 1)
    return {
        "picture_jpeg": _jpeg(images, lines),
        "picture_right": torch.cat([part[queries] for part in right], 1).tolist(),
        "picture_counts": [int(change.sum()) for change in became],
    }


def _nearest(embeddings: Tensor) -> Tensor:
    """Return the places of the nearest images of every query, [N, NEIGHBOURS]."""
    whole = normalize(embeddings.float().cpu(), dim=1)
    found = []
    for start, part in enumerate(whole.split(1_000)):
        near = part @ whole.T
        rows = torch.arange(len(part))
        near[rows, 1_000 * start + rows] = -torch.inf
        found.append(near.topk(NEIGHBOURS).indices)
    return torch.cat(found)


def _jpeg(images: Photographs, lines: Tensor) -> str:
    """Return images [Q, M] of these places as one JPEG, in base64."""
    high, wide = lines.shape
    if not high:
        return ""
    canvas = Image.new("RGB", (wide * THUMBNAIL, high * THUMBNAIL))
    for row, line in enumerate(lines.tolist()):
        for column, place in enumerate(line):
            pixels = Image.fromarray(images.pixels(place).numpy())
            small = pixels.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
            canvas.paste(small, (column * THUMBNAIL, row * THUMBNAIL))
    return jpeg(canvas)
