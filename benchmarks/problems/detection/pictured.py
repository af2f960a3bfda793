"""A picture of detection: the same images with detections before and after."""

from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.pretrained.pictures import jpeg
from metricopt.detection.detections import Kept, detections
from metricopt.detection.matching import HIT, matched
from metricopt.process.seeding import make_generator

SHOWN = 4
"""Images of a picture."""
SURE = Kept(score=0.5)
"""Only detections of this score are drawn."""


def pictured(
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
                "jpeg": _jpeg(scenes[place][0]),
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


def _jpeg(image: Tensor) -> str:
    """Return an image [3, H, W] as JPEG, in base64."""
    array = (image.cpu() * 255).round().byte().permute(1, 2, 0).numpy()
    return jpeg(Image.fromarray(array))
