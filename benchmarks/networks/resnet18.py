"""ResNet-18 for photographs."""

from functools import partial

from torch import nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head


def resnet18(head: Head, *, width: int) -> nn.Sequential:
    """Return a ResNet-18 from [N, 3, H, W].

    Args:
        head: makes the last layer, on eight times `width` features.
        width: channels of the first stage.

    Source: He et al., CVPR 2016, Table 1.
    """
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


# Of 11.69 million weights; and of a quarter of the channels.
IMAGE_NETWORKS.register("resnet18")(partial(resnet18, width=64))
IMAGE_NETWORKS.register("resnet18-slim")(partial(resnet18, width=16))
