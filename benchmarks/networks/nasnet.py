"""NASNet-A for images of 32 pixels and for those of ImageNet, of timm's cells."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

GROWN = 6
"""A normal cell puts out this many times the channels its branches have."""
REDUCED = 4
"""The same of a reduction cell."""
LARGE = 4032
"""Features of the large network."""
Pair = tuple[Tensor, Tensor]
"""Outputs of the last two cells, the later one first."""


class _Twice(nn.Module):
    """A stem of CIFAR-10, whose output stands for the outputs of two cells."""

    def __init__(self, stem: nn.Module) -> None:
        super().__init__()
        self.stem = stem

    def forward(self, images: Tensor) -> Pair:
        """Return the features of images [N, 3, H, W], twice."""
        features = self.stem(images)
        return features, features


class _TwoCells(nn.Module):
    """The stem for ImageNet: a convolution and two cells that reduce."""

    def __init__(self, stem: nn.Module, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.stem, self.first, self.second = stem, first, second

    def forward(self, images: Tensor) -> Pair:
        """Return what the second and the first cell make of images [N, 3, H, W]."""
        features = self.stem(images)
        before = self.first(features)
        return self.second(features, before), before


class _Cell(nn.Module):
    """One cell after another: it sees the outputs of the last two."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, pair: Pair) -> Pair:
        """Return its output, and that of the cell before."""
        return self.cell(*pair), pair[0]


class _Features(nn.Module):
    """All of timm's network before the pooling."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Return the last feature map of images [N, 3, H, W]."""
        features: Tensor = self.network.forward_features(images)
        return features


class _Last(nn.Module):
    """The output of the last cell alone."""

    def forward(self, pair: Pair) -> Tensor:
        """Return the features, rectified."""
        return nn.functional.relu(pair[0])


@IMAGE_NETWORKS.register("nasnet-a-large")
def nasnet_a_large(head: Head) -> nn.Sequential:
    """Return NASNet-A (6 @ 4032) from [N, 3, 331, 331]; 88.75 million weights.

    Args:
        head: makes the last layer, on 4032 features.

    Source: timm's `nasnetalarge`, which is wired as TensorFlow's: the cell after a
    reduction skips what is before it.
    """
    # Not above: a look-up of any network imports this file.
    from timm.models.nasnet import NASNetALarge

    # num_classes=0 leaves its own last layer out.
    network = NASNetALarge(num_classes=0)
    return nn.Sequential(
        _Features(network), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(LARGE)
    )


def nasnet_a(
    head: Head,
    *,
    cells: int,
    features: int,
    stem: int,
    stride: int = 1,
    imagenet: bool = False,
) -> nn.Sequential:
    """Return NASNet-A (cells @ features).

    Args:
        head: makes the last layer, on `features` features.
        cells: normal cells of each of the three stages.
        features: features of the last cell, a multiple of 24.
        stem: channels of the first convolution.
        stride: stride of the first convolution; always 2 if two reducing cells follow.
        imagenet: whether two reducing cells follow it, for large images.

    Source: Zoph et al., CVPR 2018, Fig. 2 and 4. Differs: without the auxiliary head
    and the dropped paths of its training.
    """
    # Not above: a look-up of any network imports this file.
    from timm.models import nasnet as timm

    width = features // 24
    begin = _large_stem(timm, stem, width) if imagenet else _small_stem(stem, stride)
    layers: list[nn.Module] = [begin]
    # Channels of the last two outputs; the earlier one may be twice as high and wide.
    last, before = (2 * width, width) if imagenet else (stem, stem)
    larger = imagenet
    for stage in range(3):
        own = width * 2**stage
        if stage:
            kind = timm.ReductionCell0 if stage == 1 else timm.ReductionCell1
            layers.append(_Cell(kind(before, own, last, own, "same")))
            last, before, larger = REDUCED * own, last, True
        for _ in range(cells):
            cell = timm.NormalCell(before, own, last, own, "same")
            if larger:
                cell = timm.FirstCell(before, own // 2, last, own, "same")
            layers.append(_Cell(cell))
            last, before, larger = GROWN * own, last, False
    return nn.Sequential(
        *layers, _Last(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(features)
    )


def _small_stem(channels: int, stride: int) -> nn.Module:
    convolution = nn.Conv2d(3, channels, 3, stride, padding=1, bias=False)
    return _Twice(nn.Sequential(convolution, _norm(channels)))


def _large_stem(timm: Any, channels: int, width: int) -> nn.Module:
    convolution = nn.Conv2d(3, channels, 3, stride=2, bias=False)
    return _TwoCells(
        nn.Sequential(convolution, _norm(channels)),
        timm.CellStem0(channels, width // 4, "same"),
        timm.CellStem1(channels, width // 2, "same"),
    )


def _norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.1)


# Of 3.3 million weights, from images of 32 pixels.
IMAGE_NETWORKS.register("nasnet-a-cifar")(
    partial(nasnet_a, cells=6, features=768, stem=96)
)
# For a CPU. The stem halves height and width, which the published one does not: a step
# takes a quarter of the time.
IMAGE_NETWORKS.register("nasnet-a-cifar-small")(
    partial(nasnet_a, cells=1, features=384, stem=48, stride=2)
)
# For smoke runs.
IMAGE_NETWORKS.register("nasnet-a-tiny")(
    partial(nasnet_a, cells=1, features=96, stem=16, stride=2)
)
# Of 5.29 million weights, from images of 224 pixels.
IMAGE_NETWORKS.register("nasnet-a-mobile")(
    partial(nasnet_a, cells=4, features=1056, stem=32, imagenet=True)
)
# Built as the mobile one is, for images of 96 pixels.
IMAGE_NETWORKS.register("nasnet-a-small")(
    partial(nasnet_a, cells=1, features=384, stem=32, imagenet=True)
)
