"""From the outputs of regions to detections: thresholds and non-maximum suppression."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.detection.region_outputs import region_outputs
from metricopt.detection.suppression import suppressed

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

    Args:
        outputs: outputs of the regions, packed, shape [M, P, 5 C + 6].
        kept: which of them are kept.

    Raises:
        ShapeError: if outputs are not packed.
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
