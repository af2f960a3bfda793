"""A network for the embedded digits."""

from torch import nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head


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
        *stage(1, 16), *stage(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(32)
    )
