"""Labelled images as network inputs, with augmentation as fast as the network."""

import copy

import torch
from torch import Tensor

from baselines.training.batches import WHOLE


class Images:
    """Labelled images, kept as bytes; a batch is normalised when it is asked for.

    They are examples in the sense of `metricopt.tasks.examples.Examples`.

    Args:
        images: uint8, shape [N, H, W, C].
        targets: labels, shape [N].
        centre: mean of every channel, 0 to 255, shape [C].
        scale: deviation of every channel, shape [C].

    Attributes:
        targets: labels, shape [N].
    """

    def __init__(
        self, images: Tensor, targets: Tensor, centre: Tensor, scale: Tensor
    ) -> None:
        count, self.height, self.width, channels = images.shape
        self.targets = targets
        self.padding = self.height // 8
        self.centre = centre.to(images.device, torch.float32)
        self.scale = scale.to(images.device, torch.float32)
        # Padding with the mean colour is zero padding of the normalised images.
        sides = [side + 2 * self.padding for side in (self.height, self.width)]
        empty = self.centre.round().to(torch.uint8)
        self._padded = empty.expand(count, *sides, channels).clone()
        self._inner()[:] = images

    def __len__(self) -> int:
        return len(self._padded)

    def to(self, device: torch.device) -> "Images":
        """Return the same images on a device."""
        moved = copy.copy(self)
        for name in ("targets", "centre", "scale", "_padded"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def first(self, count: int | None) -> "Images":
        """Return the first images; all of them for None."""
        kept = copy.copy(self)
        kept.targets, kept._padded = self.targets[:count], self._padded[:count]
        return kept

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return images as they are, [n, C, H, W], channels last in memory."""
        return self._normalised(self._inner()[index])

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return random crops of the padded images; colour images are flipped, too.

        The padding is an eighth of the height: 4 of 32 pixels. Half of the colour
        images are mirrored. Grey images are digits: a mirrored digit is not a digit, so
        they are not flipped.

        Args:
            index: which images, shape [n].
            generator: on the CPU.
            share: the places of them that are returned.

        Returns:
            Normalised images, float32, shape [n, C, H, W], channels last in memory.

        Source: He et al., CVPR 2016, Sec. 4.2.
        """
        device = self._padded.device
        shape = (len(index), 1)
        top, left = (
            torch.randint(2 * self.padding + 1, shape, generator=generator)
            for _ in range(2)
        )
        mirrored = torch.rand(shape, generator=generator) < 0.5
        mirrored = mirrored & (len(self.centre) == 3)
        index, top, left, mirrored = (
            each[share].to(device) for each in (index, top, left, mirrored)
        )
        rows = top + torch.arange(self.height, device=device)
        columns = torch.arange(self.width, device=device)
        columns = left + torch.where(mirrored, columns.flip(0), columns)
        picked = index[:, None, None]
        crops = self._padded[picked, rows[:, :, None], columns[:, None, :]]
        return self._normalised(crops)

    def _inner(self) -> Tensor:
        rows = slice(self.padding, self.padding + self.height)
        columns = slice(self.padding, self.padding + self.width)
        return self._padded[:, rows, columns]

    def _normalised(self, images: Tensor) -> Tensor:
        """Turn bytes [n, H, W, C] into inputs; a view makes the channels come first."""
        return ((images - self.centre) / self.scale).permute(0, 3, 1, 2)


def channel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every channel, each [C].

    Args:
        images: uint8, shape [N, H, W, C].
    """
    # Counts of the 256 levels: no float copy of all images is made.
    counts = torch.stack(
        [
            torch.bincount(images[..., channel].flatten(), minlength=256)
            for channel in range(images.shape[-1])
        ]
    ).double()
    levels = torch.arange(256, dtype=torch.float64)
    shares = counts / counts.sum(1, keepdim=True)
    centre = shares @ levels
    variance = shares @ levels.square() - centre.square()
    return centre.float(), variance.clamp_min(1.0).sqrt().float()
