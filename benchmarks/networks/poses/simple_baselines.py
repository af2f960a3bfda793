"""Simple baselines of human pose estimation, on networks of torchvision.

Source: Xiao, Wu and Wei, ECCV 2018.
"""

from torch import nn

from benchmarks.networks.poses.contract import (
    POSE_NETWORKS,
    PoseNetwork,
    simple_baseline,
)


@POSE_NETWORKS.register("resnet50")
def resnet50(joints: int) -> PoseNetwork:
    """Return the published network: ResNet-50, three deconvolutions of 256 channels."""
    # Not above: a look-up of any network imports this file, and torchvision takes
    # seconds to import.
    from torchvision.models import resnet50

    stages = dict(resnet50(weights=None).named_children())
    features = stages.pop("fc").in_features
    del stages["avgpool"]
    return simple_baseline(
        stages,
        features,
        (256, 256, 256),
        joints,
        weights="ResNet50_Weights.IMAGENET1K_V1",
        left_out=("fc",),
    )


@POSE_NETWORKS.register("squeezenet1_1")
def squeezenet1_1(joints: int) -> PoseNetwork:
    """Return SqueezeNet 1.1 with two deconvolutions of 64 channels, for a CPU.

    SqueezeNet ends at stride 16, so two deconvolutions reach the stride of the
    published three. Its first convolution is padded, so that the sides of maps are
    halved exactly.

    Source: Iandola et al., arXiv:1602.07360, 2016.
    """
    from torchvision.models import squeezenet1_1

    features = squeezenet1_1(weights=None).features
    features[0].padding = (1, 1)
    return simple_baseline(
        {"features": features},
        512,
        (64, 64),
        joints,
        weights="SqueezeNet1_1_Weights.IMAGENET1K_V1",
        left_out=("classifier",),
    )


@POSE_NETWORKS.register("tiny")
def tiny(joints: int) -> PoseNetwork:
    """Return three convolutions and a deconvolution, for smoke runs."""
    stages: dict[str, nn.Module] = {}
    before = 3
    for number, width in enumerate((16, 32, 32), start=1):
        convolution = nn.Conv2d(before, width, 3, stride=2, padding=1, bias=False)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out")
        stages[f"conv{number}"] = convolution
        stages[f"bn{number}"] = nn.BatchNorm2d(width)
        stages[f"act{number}"] = nn.ReLU()
        before = width
    return simple_baseline(stages, before, (16,), joints)
