"""Images with their objects, as a detector is trained on and judged by them."""

import copy
from typing import Any

import torch
from torch import Tensor

from baselines.training.batches import WHOLE
from benchmarks.data.detection.contract import DetectionImages
from metricopt.detection.truths import counted

Sighting = tuple[Tensor, dict[str, Tensor]]
"""An image [3, H, W] in [0, 1], and its `boxes` and `labels` without difficult ones."""


class Scenes:
    """Images of any sizes with their objects; read whenever they are asked for.

    As a sequence they are pairs of an image and its target, see
    `metricopt.detection.head.Regions`; with `augmented` they can be trained on.

    Args:
        source: all images of a data set.
        places: places of these images in it, int64, shape [N].

    Attributes:
        targets: objects, shape [N, G, 6].
        upside_down: whether augmentation flips images, too, not only mirrors them.
    """

    def __init__(self, source: DetectionImages, places: Tensor) -> None:
        self._source, self._places = source, places
        self.targets = source.truths[places]
        self.upside_down = False

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Sighting:
        """Return an image with its target, on the device of the targets."""
        pixels = self._source.pixels(int(self._places[place]))
        image = pixels.to(self.targets.device).float() / 255
        truths = self.targets[place]
        known = truths[counted(truths)]
        return image, {"boxes": known[:, :4], "labels": known[:, 4].long()}

    def to(self, device: torch.device) -> "Scenes":
        """Return the same images, read to a device."""
        moved = copy.copy(self)
        moved.targets = self.targets.to(device)
        return moved

    def flipped(self, *, upside_down: bool) -> "Scenes":
        """Return the same images with that augmentation."""
        changed = copy.copy(self)
        changed.upside_down = upside_down
        return changed

    def batch(self, index: slice | Tensor) -> Any:
        """Return some images and their targets as they are, two lists of length n."""
        places = torch.arange(len(self))
        chosen = index if isinstance(index, slice) else index.cpu()
        return _two_lists([self[at] for at in places[chosen].tolist()])

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Any:
        """Return some images and their targets, a random half of them mirrored.

        Args:
            index: which images, shape [n].
            generator: on the CPU.
            share: the places of them that are read and returned.
        """
        chances = torch.rand(2, len(index), generator=generator)[:, share] < 0.5
        found = [self[at] for at in index[share].tolist()]
        for axis, chosen in ((1, chances[0]), (0, chances[1])):
            if axis or self.upside_down:
                found = [
                    _mirrored(one, axis) if flip else one
                    for one, flip in zip(found, chosen.tolist(), strict=True)
                ]
        return _two_lists(found)


def _mirrored(sighting: Sighting, axis: int) -> Sighting:
    """Return an image with its boxes, mirrored: left and right by 1, or top by 0."""
    image, target = sighting
    low, high = (0, 2) if axis else (1, 3)
    boxes = target["boxes"].clone()
    side = image.shape[1 + axis]
    boxes[:, low], boxes[:, high] = (
        side - target["boxes"][:, high],
        side - target["boxes"][:, low],
    )
    return image.flip(1 + axis), {**target, "boxes": boxes}


def _two_lists(pairs: list[Sighting]) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    return [image for image, _ in pairs], [target for _, target in pairs]
