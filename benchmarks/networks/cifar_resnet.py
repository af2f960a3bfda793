"""Residual networks for images of 32x32.

Source: He et al., CVPR 2016, Sec. 4.2: 6n + 2 layers, shortcuts of type A.
"""

from torch import Tensor, nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

WIDTHS = (16, 32, 64)
RESNET_FEATURES = WIDTHS[-1]


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


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut.

    Args:
        inputs: channels that come in.
        outputs: channels that go out.
        stride: of the first convolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        changes = stride > 1 or outputs > inputs
        self.shortcut = (
            Subsampling(stride, outputs - inputs) if changes else nn.Identity()
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features of shape [N, outputs, H / stride, W / stride]."""
        hidden = self.relu(self.bn1(self.conv1(inputs)))
        outputs: Tensor = self.relu(
            self.bn2(self.conv2(hidden)).add_(self.shortcut(inputs))
        )
        return outputs


@IMAGE_NETWORKS.register("resnet8")
def resnet8(head: Head) -> nn.Sequential:
    """Return a ResNet-8 with 75 thousand weights, from [N, 3, H, W], for a CPU.

    Args:
        head: makes the last layer, on 64 features.
    """
    return _resnet(head, blocks=1)


@IMAGE_NETWORKS.register("resnet32")
def resnet32(head: Head) -> nn.Sequential:
    """Return a ResNet-32 with 0.46 million weights, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 64 features.
    """
    return _resnet(head, blocks=5)


@IMAGE_NETWORKS.register("resnet56")
def resnet56(head: Head) -> nn.Sequential:
    """Return a ResNet-56 with 0.85 million weights, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 64 features.
    """
    return _resnet(head, blocks=9)


def _resnet(head: Head, *, blocks: int) -> nn.Sequential:
    """Return a network with n = `blocks` residual blocks in each of three stages."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
    ]
    before = WIDTHS[0]
    for width in WIDTHS:
        for block in range(blocks):
            stride = 2 if width > before and block == 0 else 1
            layers.append(ResidualBlock(before, width, stride))
            before = width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(RESNET_FEATURES)
    )
