"""Labelled images as network inputs, with augmentation as fast as the network."""

import copy

import torch
from torch import Tensor

from baselines.training.batches import WHOLE
from benchmarks.data.registry import load_dataset
from benchmarks.problems.images.settings import (
    LEARNED_SHARE,
    OBSERVE_SHARE,
    ImageProblem,
)
from benchmarks.problems.splits import Splits, require_classes
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator


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
        self.padding = self.shift = self.height // 8
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

    def shifted(self, shift: int) -> "Images":
        """Return the same images, whose random crops reach less far over the edges.

        Args:
            shift: pixels, from 0 to an eighth of the height.

        Raises:
            ConfigError: if it is out of its range.
        """
        if not 0 <= shift <= self.padding:
            raise ConfigError(
                f"crops of {self.height} rows need a shift from 0 to {self.padding}, "
                f"got {shift}"
            )
        shifted = copy.copy(self)
        shifted.shift = shift
        return shifted

    def batch(self, index: Tensor | slice) -> Tensor:
        """Return images as they are, [n, C, H, W], channels last in memory."""
        return self._normalised(self._inner()[index])

    def augmented(
        self, index: Tensor, generator: torch.Generator, share: slice = WHOLE
    ) -> Tensor:
        """Return random crops of the padded images; colour images are flipped, too.

        The padding is an eighth of the height, 4 of 32 pixels, unless they are
        `shifted` less. Half of the colour
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
            torch.randint(2 * self.shift + 1, shape, generator=generator)
            + self.padding
            - self.shift
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


def load_splits(problem: ImageProblem, replicate: int) -> Splits:
    """Return the splits of an image problem for one replicate.

    A data set with an official test part keeps it. In any other, a random fifth is the
    test part. A tenth of the rest is `observe`. The replicate decides splits, tail and
    noise.

    Raises:
        DataError: if observe lacks a class that training has.
    """
    data = load_dataset(problem.dataset, problem.variant, offline=True)
    generator = make_generator("image split", problem.dataset, replicate)
    learned = data.train_rows or round(LEARNED_SHARE * len(data.targets))
    rows = torch.arange(len(data.targets))
    if data.train_rows is None:
        rows = rows[torch.randperm(len(rows), generator=generator)]
    order = rows[:learned][torch.randperm(learned, generator=generator)]
    observed = round(OBSERVE_SHARE * learned)
    observe, train, test = order[:observed], order[observed:], rows[learned:]
    train = train[: problem.max_examples]
    classes = len(data.classes)
    train = long_tail(train, data.targets, problem.imbalance, generator)
    labels = noisy(data.targets[train], classes, problem.label_noise, generator)
    where = f"the observe split of {data.label}"
    wanted = {label: label for label in labels.unique().tolist()}
    require_classes(where, data.targets[observe], wanted)
    centre, scale = channel_statistics(as_bytes(data.inputs[train]))

    def images(index: Tensor, targets: Tensor) -> Images:
        pixels = as_bytes(data.inputs[index])
        return Images(pixels, targets, centre, scale)

    return Splits(
        images(train, labels),
        images(observe, data.targets[observe]),
        images(test, data.targets[test]),
        data.label,
        data.digest,
        classes,
    )


def as_bytes(inputs: Tensor) -> Tensor:
    """Return images as uint8, channels last: [N, H, W, C].

    Args:
        inputs: bytes in that order already, or values in [0, 1] as [N, C, H, W].
    """
    if inputs.dtype == torch.uint8:
        return inputs
    return (inputs * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def long_tail(
    rows: Tensor, targets: Tensor, imbalance: float, generator: torch.Generator
) -> Tensor:
    """Return rows with an exponential tail: class c keeps n * imbalance^(-c / (C - 1)).

    Args:
        rows: indices of training images, in random order, shape [N].
        targets: labels of all images.
        imbalance: ratio of the first class's count to the last one's, 1 or more.
        generator: shuffles the rows kept, which are the first ones of every class.

    Returns:
        The rows kept, shape [N'], in random order.

    Source: Cui et al., CVPR 2019, Sec. 5.1; n is the count of the rarest class.
    """
    if imbalance == 1:
        return rows
    labels = targets[rows]
    counts = torch.bincount(labels)
    last, most = len(counts) - 1, int(counts.min())
    kept = [
        rows[labels == label][: round(most * imbalance ** (-label / last))]
        for label in range(last + 1)
    ]
    joined = torch.cat(kept)
    return joined[torch.randperm(len(joined), generator=generator)]


def noisy(
    labels: Tensor, classes: int, share: float, generator: torch.Generator
) -> Tensor:
    """Return labels with a share of them replaced by another class, uniformly."""
    if share == 0:
        return labels
    chosen = torch.randperm(len(labels), generator=generator)
    chosen = chosen[: round(share * len(labels))]
    shift = torch.randint(1, classes, chosen.shape, generator=generator)
    changed = labels.clone()
    changed[chosen] = (labels[chosen] + shift) % classes
    return changed
