"""Residual networks for images of 32x32.

Source: He et al., CVPR 2016, Sec. 4.2: 6n + 2 layers, shortcuts of type A.
"""

from functools import partial

from torch import Tensor, nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

WIDTHS = (16, 32, 64)


class Subsampling(nn.Module):
    """A shortcut without weights: it drops pixels and adds empty channels.

    Args:
        stride: every so many pixels one is kept.
        channels: how many are added.
    """

    def __init__(self, stride: int, channels: int) -> None:
        super().__init__()
        self.stride, self.channels = stride, channels

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features of shape [N, C + channels, H / stride, W / stride]."""
        kept = inputs[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(kept, (0, 0, 0, 0, 0, self.channels))


def resnet(head: Head, *, blocks: int) -> nn.Sequential:
    """Return a residual network from [N, 3, H, W].

    Args:
        head: makes the last layer, on 64 features.
        blocks: residual blocks n in each of three stages.
    """
    # Not above: a look-up of any network imports this file.
    from torchvision.models.resnet import BasicBlock

    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
    ]
    before = WIDTHS[0]
    for width in WIDTHS:
        for _ in range(blocks):
            stride = 2 if width > before else 1
            shortcut = Subsampling(stride, width - before) if stride > 1 else None
            layers.append(BasicBlock(before, width, stride, shortcut))
            before = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(WIDTHS[-1])
    )


# Of 75 thousand weights, for a CPU; of 0.27, 0.46 and 0.85 million.
IMAGE_NETWORKS.register("resnet8")(partial(resnet, blocks=1))
IMAGE_NETWORKS.register("resnet20")(partial(resnet, blocks=3))
IMAGE_NETWORKS.register("resnet32")(partial(resnet, blocks=5))
IMAGE_NETWORKS.register("resnet56")(partial(resnet, blocks=9))
