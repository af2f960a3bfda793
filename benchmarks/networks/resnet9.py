"""A residual network that trains fast on two cores.

Source: D. Page, How to train your ResNet, 2018: ResNet-9, on images of 32x32. Differs:
a quarter of its channels; pooling before the normalisation, as in Jordan,
arXiv:2404.00498; a last layer with an offset, whose outputs are not scaled.
"""

from torch import Tensor, nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

WIDTHS = (16, 32, 64, 128)


class Residual(nn.Sequential):
    """Layers whose input is added to their output."""

    def forward(self, features: Tensor) -> Tensor:
        """Return features of the shape they have, [N, C, H, W]."""
        output: Tensor = super().forward(features)
        return features + output


def _convolution(inputs: int, outputs: int, *, pool: bool = False) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    pooling = [nn.MaxPool2d(2)] if pool else []
    return [convolution, *pooling, nn.BatchNorm2d(outputs), nn.ReLU()]


@IMAGE_NETWORKS.register("resnet9")
def resnet9(head: Head) -> nn.Sequential:
    """Return eight convolutions, four of them in residual blocks, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 128 features.
    """
    first, second, third, last = WIDTHS
    return nn.Sequential(
        *_convolution(3, first),
        *_convolution(first, second, pool=True),
        Residual(*_convolution(second, second), *_convolution(second, second)),
        *_convolution(second, third, pool=True),
        *_convolution(third, last, pool=True),
        Residual(*_convolution(last, last), *_convolution(last, last)),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        head(last),
    )
