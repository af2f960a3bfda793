"""Networks for images of 32x32 and less: ResNet-32, and the small one of AUCPR papers.

Both are plain sequences, so that an adapter finds its sites and cuts them anywhere.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from metricopt.registry import Registry

WIDTHS = (16, 32, 64)
BLOCKS = 5
RESNET_FEATURES = WIDTHS[-1]
SMALL_FEATURES = 192

Head = Callable[[int], nn.Module]
"""Makes the last layer from its number of input features."""

IMAGE_NETWORKS: Registry[Callable[[Head], nn.Sequential]] = Registry("image network")


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


@IMAGE_NETWORKS.register("resnet32")
def resnet32(head: Head) -> nn.Sequential:
    """Return a ResNet-32 with 0.46 million weights, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 64 features.

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
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(RESNET_FEATURES)
    )


@IMAGE_NETWORKS.register("small")
def small_network(head: Head) -> nn.Sequential:
    """Return two 5x5 convolutions and two dense layers, from [N, 3, 32, 32].

    Args:
        head: makes the last layer, on 192 features.

    Source: the CIFAR-10 tutorial network of TensorFlow, which the network of Eban et
        al., AISTATS 2017, is inferred to be. Differs: batch norm for response
        normalisation, whole images for crops of 24x24, and a third pooling.
    """

    def stage(inputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, 64, 5, padding=2)
        return [convolution, nn.ReLU(), nn.MaxPool2d(3, 2), nn.BatchNorm2d(64)]

    dense = [
        nn.Linear(64 * 3 * 3, 384),
        nn.ReLU(),
        nn.Linear(384, SMALL_FEATURES),
        nn.ReLU(),
    ]
    return nn.Sequential(
        *stage(3),
        *stage(64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *dense,
        head(SMALL_FEATURES),
    )


@IMAGE_NETWORKS.register("digit-net")
def digit_network(head: Head) -> nn.Sequential:
    """Return two 3x3 convolutions, for the embedded digits, from [N, 1, 8, 8].

    Args:
        head: makes the last layer, on 32 features.
    """

    def stage(inputs: int, outputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *stage(1, 16),
        *stage(16, 32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        head(32),
    )


def build_network(name: str, head: Head, seed: int) -> nn.Sequential:
    """Return an image network with random weights, drawn from a seed of its own.

    Convolutions have He's initialisation for rectifiers, the rest torch's own.

    Args:
        name: of a registered network.
        head: makes its last layer.
        seed: of the weights.

    Raises:
        ConfigError: if there is no such network; the message lists the known names.
    """
    make = IMAGE_NETWORKS.get(name)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = make(head)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out")
    return network
