"""The network whose guided step is timed: ResNet-32 for images of 32x32 and less."""

from torch import Tensor, nn

WIDTHS = (16, 32, 64)
BLOCKS = 5


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
        self.relu = nn.ReLU()
        self.stride = stride
        self.padding = outputs - inputs

    def forward(self, inputs: Tensor) -> Tensor:
        """Return features of shape [N, outputs, H / stride, W / stride]."""
        hidden = self.relu(self.bn1(self.conv1(inputs)))
        # The shortcut has no weights: it drops pixels and adds empty channels.
        shortcut = inputs[:, :, :: self.stride, :: self.stride]
        shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, 0, self.padding))
        outputs: Tensor = self.relu(self.bn2(self.conv2(hidden)) + shortcut)
        return outputs


def resnet32(classes: int = 10) -> nn.Sequential:
    """Return a ResNet-32 with 0.46 million weights, from [N, 3, H, W] to [N, classes].

    Args:
        classes: number of outputs.

    Source: He et al., CVPR 2016, Sec. 4.2, n = 5, shortcuts of type A.
    """
    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
    ]
    before = WIDTHS[0]
    for width in WIDTHS:
        for block in range(BLOCKS):
            stride = 2 if width > before and block == 0 else 1
            layers.append(ResidualBlock(before, width, stride))
            before = width
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
    return nn.Sequential(*layers, *head)
