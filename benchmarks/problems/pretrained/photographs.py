"""Labelled photographs as network inputs, with augmentation."""

import copy
import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from baselines.training.batches import WHOLE
from benchmarks.data.files.decoded import Pixels

CENTRE, SCALE = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and deviation of the channels of ImageNet, as torchvision's networks expect."""
ASPECT = (3 / 4, 4 / 3)
"""Width over height of random crops."""


class Photographs:
    """Labelled square photographs; a batch is read and normalised when it is asked for.

    They are examples in the sense of `metricopt.tasks.examples.Examples`.

    Args:
        source: pixels of all images of a data set.
        places: places of these images in it, shape [N].
        targets: labels, shape [N].

    Attributes:
        targets: labels, shape [N].
        least_area: least share of an image that a random crop holds.
    """

    def __init__(self, source: Pixels, places: Tensor, targets: Tensor) -> None:
        self._source, self._places = source, places
        self.targets = targets
        self.least_area = 0.25

    def __len__(self) -> int:
        return len(self._places)

    def to(self, device: torch.device) -> "Photographs":
        """Return the same images, whose batches are on a device."""
        moved = copy.copy(self)
        moved.targets = self.targets.to(device)
        return moved

    def first(self, count: int | None) -> "Photographs":
        """Return the first images; all of them for None."""
        kept = copy.copy(self)
        kept.targets, kept._places = self.targets[:count], self._places[:count]
        return kept

    def with_crops(self, least_area: float) -> "Photographs":
        """Return the same images with random crops of at least this share of each."""
        changed = copy.copy(self)
        changed.least_area = least_area
        return changed

    def pixels(self, place: int) -> Tensor:
        """Return an image as bytes, uint8, shape [side, side, 3]."""
        return self._source(self._places[place : place + 1])[0]

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return images as they are, float32, [n, 3, side, side], channels last."""
        chosen = index if isinstance(index, slice) else index.cpu()
        return self._normalised(self._source(self._places[chosen]))

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return random crops, scaled to the full size; half of them are mirrored.

        Args:
            index: which images, shape [n].
            generator: on the CPU.
            share: the places of them that are read and returned.

        Returns:
            Normalised images, float32, shape [n, 3, side, side], channels last.

        Source: Szegedy et al., CVPR 2015, with another least area.
        """
        crops = _crops(len(index), self.least_area, generator)[share]
        images = self.batch(index[share])
        grid = affine_grid(crops, list(images.shape), False)
        cut = grid_sample(images, grid.to(images), align_corners=False)
        return cut.contiguous(memory_format=torch.channels_last)

    def _normalised(self, images: Tensor) -> Tensor:
        numbers = images.to(self.targets.device).float() / 255
        centre, scale = numbers.new_tensor(CENTRE), numbers.new_tensor(SCALE)
        return ((numbers - centre) / scale).permute(0, 3, 1, 2)


def _crops(count: int, least: float, generator: torch.Generator) -> Tensor:
    """Return the affine maps of random crops, some of them mirrored, [count, 2, 3]."""
    area, aspect, across, down, mirror = torch.rand(5, count, generator=generator)
    share = least + (1 - least) * area
    low, high = (math.log(bound) for bound in ASPECT)
    ratio = (low + (high - low) * aspect).exp()
    wide = (share * ratio).sqrt().clamp(max=1)
    high_share = (share / ratio).sqrt().clamp(max=1)
    maps = torch.zeros(count, 2, 3)
    maps[:, 0, 0] = wide * torch.where(mirror < 0.5, -1.0, 1.0)
    maps[:, 1, 1] = high_share
    # The middle of the crop, where the whole image reaches from -1 to 1.
    maps[:, 0, 2] = (2 * across - 1) * (1 - wide)
    maps[:, 1, 2] = (2 * down - 1) * (1 - high_share)
    return maps
