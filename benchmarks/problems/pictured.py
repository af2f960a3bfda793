"""Pictures that records keep: what a choice changes, before and after."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.pretrained.photographs import Photographs
from metricopt.detection.detections import HIT, Kept, detections, matched
from metricopt.process.seeding import make_generator

QUALITY = 85
SHOWN = 4
"""Images of a picture of detections."""
SURE = Kept(score=0.5)
"""Only detections of this score are drawn."""
NEIGHBOURS = 4
EACH = 3
"""Queries whose nearest image becomes right, and whose nearest becomes wrong."""
THUMBNAIL = 64
"""Pixels of a side."""


def changed_scenes(
    scenes: Scenes, classes: tuple[str, ...], before: Tensor, after: Tensor
) -> Mapping[str, Any]:
    """Return notes of images on which detections become right or wrong, or are new.

    The images are drawn by a fixed seed from all such images, not chosen.

    Args:
        scenes: the N images.
        classes: names of the classes.
        before: packed outputs of the untouched detector, shape [N, P, 5 C + 6].
        after: packed outputs of a result.

    Returns:
        `scenes`: of every image its `jpeg` in base64, and `before` and `after`, lists
        of detections x1, y1, x2, y2, class, score, and whether it is right;
        `scene_counts`: images with such a change, and of all.
    """
    targets = scenes.targets.cpu()
    both = [_of_images(outputs.cpu(), targets, classes) for outputs in (before, after)]
    changes = [_told(old) != _told(new) for old, new in zip(*both, strict=True)]
    order = torch.randperm(len(scenes), generator=make_generator("scenes"))
    chosen = [place for place in order.tolist() if changes[place]][:SHOWN]
    return {
        "scenes": [
            {
                "jpeg": _image_jpeg(scenes[place][0]),
                "before": both[0][place],
                "after": both[1][place],
            }
            for place in chosen
        ],
        "scene_counts": [sum(changes), len(changes)],
    }


def _of_images(
    outputs: Tensor, targets: Tensor, classes: tuple[str, ...]
) -> list[list[list[Any]]]:
    """Return the detections of every image, each as a list."""
    found = detections(outputs, SURE)
    right = matched(found, targets) == HIT
    listed: list[list[list[Any]]] = [[] for _ in range(len(targets))]
    for at, image in enumerate(found.image.tolist()):
        box = [round(side, 1) for side in found.box[at].tolist()]
        name, score = (
            classes[int(found.label[at]) - 1],
            round(float(found.score[at]), 3),
        )
        listed[image].append([*box, name, score, bool(right[at])])
    return listed


def _told(found: list[list[Any]]) -> list[tuple[str, bool]]:
    """Return of what class detections are, and whether right, in any order."""
    return sorted((name, right) for *_, name, _, right in found)


def _image_jpeg(image: Tensor) -> str:
    """Return an image [3, H, W] as JPEG, in base64."""
    array = (image.cpu() * 255).round().byte().permute(1, 2, 0).numpy()
    return _jpeg(Image.fromarray(array))


def changed_queries(
    images: Photographs, before: Tensor, after: Tensor
) -> Mapping[str, Any]:
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
        "picture_jpeg": _lines_jpeg(images, lines),
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


def _lines_jpeg(images: Photographs, lines: Tensor) -> str:
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
    return _jpeg(canvas)


def _jpeg(image: Image.Image) -> str:
    """Return an image as JPEG, in base64."""
    content = io.BytesIO()
    image.save(content, "JPEG", quality=QUALITY)
    return base64.b64encode(content.getvalue()).decode()
