"""ResNet-18 for photographs."""

from torch import nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

WIDTH, SLIM = 64, 16
"""Channels of the first stage; the last one has eight times as many."""


@IMAGE_NETWORKS.register("resnet18")
def resnet18(head: Head) -> nn.Sequential:
    """Return a ResNet-18 with 11.69 million weights, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 512 features.

    Source: He et al., CVPR 2016, Table 1.
    """
    return _resnet18(head, WIDTH)


@IMAGE_NETWORKS.register("resnet18-slim")
def resnet18_slim(head: Head) -> nn.Sequential:
    """Return a ResNet-18 with a quarter of the channels, from [N, 3, H, W].

    Args:
        head: makes the last layer, on 128 features.
    """
    return _resnet18(head, SLIM)


def _resnet18(head: Head, width: int) -> nn.Sequential:
    # Not above: a look-up of any network imports this file.
    from torchvision.models.resnet import BasicBlock

    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    before = width
    for stage in range(4):
        own = width * 2**stage
        stride = 1 if stage == 0 else 2
        layers += [
            BasicBlock(before, own, stride, _shortcut(before, own, stride)),
            BasicBlock(own, own),
        ]
        before = own
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(before))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """Return the projection where the shape changes, else None."""
    if stride == 1:
        return None
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
    )
