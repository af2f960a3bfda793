"""The contract of an image network: a plain sequence made from a head.

Plain sequences, so that an adapter finds its sites and cuts them anywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

Head = Callable[[int], nn.Module]
"""Makes the last layer from its number of input features."""
IMAGE_NETWORKS: Registry[Callable[[Head], nn.Sequential]] = Registry(
    "image network", "benchmarks.networks"
)


def build_network(name: str, head: Head, seed: int) -> nn.Sequential:
    """Return an image network with random weights, drawn from a seed of its own.

    Convolutions have He's initialisation for rectifiers, the rest torch's own.

    Args:
        name: name of a registered network.
        head: makes its last layer.
        seed: seed of the weights.

    Raises:
        ConfigError: if there is no such network; the message lists the known names.
    """
    make = IMAGE_NETWORKS.get(name)
    with globally_seeded(seed):
        network = make(head)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out")
    return network


@dataclass(frozen=True)
class Pretrained:
    """Weights for ImageNet; a module that may start from them names them.

    Attributes:
        name: name of the weights in torchvision.
        left_out: modules of torchvision's network that have no counterpart here.
        added: modules here that torchvision's network does not have.
    """

    name: str
    left_out: tuple[str, ...]
    added: tuple[str, ...]
