"""The contract of pose networks: convolutions, then deconvolutions to heat maps."""

from collections.abc import Callable, Mapping

from torch import nn

from benchmarks.networks.contract import Pretrained
from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

STRIDE = 4
"""Pixels of the input for a cell of the heat maps, in either direction."""
DEVIATION = 0.001
"""Deviation of the first weights of what is added, as published."""


class PoseNetwork(nn.Sequential):
    """A network from images [N, 3, H, W] to heat maps [N, J, H / 4, W / 4].

    Attributes:
        sites: where FiLM stands by default: the last normalisation, so that nearly
            everything is computed once and cached.
        pretrained: the weights it may start from; None if there are none.
    """

    sites: tuple[str, ...] = ()
    pretrained: Pretrained | None = None


POSE_NETWORKS: Registry[Callable[[int], PoseNetwork]] = Registry(
    "pose network", "benchmarks.networks.poses"
)
"""From the number J of joints to a network."""


def simple_baseline(
    stages: Mapping[str, nn.Module],
    features: int,
    widths: tuple[int, ...],
    joints: int,
    *,
    weights: str = "",
    left_out: tuple[str, ...] = (),
) -> PoseNetwork:
    """Return a network from its stages: deconvolutions and a map of every joint.

    Args:
        stages: modules by name, which end in a feature map [N, features, h, w].
        features: channels of that map.
        widths: channels of the deconvolutions, each of which doubles the sides.
        joints: number of joints J.
        weights: name of torchvision's weights for the stages; empty for none.
        left_out: modules of torchvision's network that are no stages.

    Source: Xiao, Wu and Wei, ECCV 2018.
    """
    network = PoseNetwork()
    for name, stage in stages.items():
        network.add_module(name, stage)
    added = ["heatmaps"]
    for number, width in enumerate(widths, start=1):
        up = nn.ConvTranspose2d(features, width, 4, 2, 1, bias=False)
        nn.init.normal_(up.weight, std=DEVIATION)
        parts = {"deconv": up, "norm": nn.BatchNorm2d(width), "relu": nn.ReLU()}
        for name, module in parts.items():
            network.add_module(f"{name}{number}", module)
            added.append(f"{name}{number}")
        features = width
    last = nn.Conv2d(features, joints, 1)
    nn.init.normal_(last.weight, std=DEVIATION)
    nn.init.zeros_(last.bias)  # type: ignore[arg-type]
    network.add_module("heatmaps", last)
    network.sites = (f"norm{len(widths)}",)
    if weights:
        network.pretrained = Pretrained(weights, left_out, tuple(added))
    return network


def build_pose_network(name: str, joints: int, seed: int) -> PoseNetwork:
    """Return a pose network with random weights, drawn from a seed of its own.

    Args:
        name: name of a registered network.
        joints: number of joints J.
        seed: seed of the weights.

    Raises:
        ConfigError: if there is no such network, or no joint.
    """
    make = POSE_NETWORKS.get(name)
    if joints < 1:
        raise ConfigError(f"a pose must have 1 joint or more, got {joints}")
    with globally_seeded(seed):
        return make(joints)


def check_sides(height: int, width: int, multiple: int = 16) -> None:
    """Check that the sides of inputs are halved and doubled without a rest.

    Raises:
        ConfigError: if a side is not a multiple.
    """
    if height < multiple or width < multiple or height % multiple or width % multiple:
        raise ConfigError(
            f"sides of the inputs of a pose network must be multiples of {multiple}, "
            f"got {height} x {width}"
        )
