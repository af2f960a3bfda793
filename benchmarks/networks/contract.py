"""The contract of image networks, and of those that embed images.

An image network is a plain sequence made from a head, so that an adapter finds its
sites and cuts it anywhere. An embedding network is stages, then an embedding of unit
length. Its stages keep the names that torchvision gives them, so that its checkpoints
fit; only their classifier is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

State = dict[str, Tensor]
"""Tensors of a network by name."""
Head = Callable[[int], nn.Module]
"""Makes the last layer from its number of input features."""
IMAGE_NETWORKS: Registry[Callable[[Head], nn.Sequential]] = Registry(
    "image network", "benchmarks.networks"
)
ADDED = ("embedding",)
"""What no network for ImageNet has."""


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
    """Published weights; a module that may start from them names them.

    Attributes:
        name: name of the weights in torchvision, or of their file here.
        left_out: modules of the published network that have no counterpart here.
        added: modules here that the published network does not have.
        url: where they are; empty for torchvision, which knows it.
        sha256: checksum of what is there.
        renamed: returns published tensors by the names they have here.
    """

    name: str
    left_out: tuple[str, ...]
    added: tuple[str, ...]
    url: str = ""
    sha256: str = ""
    renamed: Callable[[State], State] = dict

    def __post_init__(self) -> None:
        if bool(self.url) != bool(self.sha256):
            raise ConfigError("published weights need both their url and their sha256")


class EmbeddingNetwork(nn.Sequential):
    """A network from images [N, 3, H, W] to embeddings [N, E] of unit length.

    Attributes:
        sites: where FiLM stands by default: the outputs before the last activation,
            so that nearly everything is computed once and cached.
        pretrained: the weights it may start from; None if there are none.
    """

    sites: tuple[str, ...] = ()
    pretrained: Pretrained | None = None


class Normalised(nn.Module):
    """Scales vectors to unit length, in float32 at least.

    A zero vector stays zero, so that metrics see that it has no direction.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Return vectors of length 1, or 0, from [N, E]."""
        exact = inputs.to(torch.promote_types(inputs.dtype, torch.float32))
        return nn.functional.normalize(exact, dim=1)


EMBEDDING_NETWORKS: Registry[Callable[[int], EmbeddingNetwork]] = Registry(
    "embedding network", "benchmarks.networks.embedding"
)
"""From the number E of dimensions of the embedding to a network."""


def embedding_network(
    stages: Mapping[str, nn.Module],
    features: int,
    size: int,
    *,
    sites: tuple[str, ...],
    pretrained: Pretrained | None = None,
) -> EmbeddingNetwork:
    """Return a network from its stages: pooled, embedded and normalised.

    Args:
        stages: modules by name, which end in a feature map [N, features, h, w].
        features: channels of that map.
        size: number E of dimensions of the embedding.
        sites: names of the modules where FiLM stands by default.
        pretrained: the weights it may start from.

    Source: Huang et al., CVPR 2021, Sec. 4.4.
    """
    network = EmbeddingNetwork()
    for name, stage in stages.items():
        network.add_module(name, stage)
    network.add_module("avgpool", nn.AdaptiveAvgPool2d(1))
    network.add_module("flatten", nn.Flatten())
    network.add_module("embedding", nn.Linear(features, size))
    network.add_module("normalised", Normalised())
    network.sites, network.pretrained = sites, pretrained
    return network


def build_embedding_network(name: str, size: int, seed: int) -> EmbeddingNetwork:
    """Return an embedding network with random weights, drawn from a seed of its own.

    Args:
        name: name of a registered network.
        size: number E of dimensions of the embedding.
        seed: seed of the weights.

    Raises:
        ConfigError: if there is no such network, or the size is not positive.
    """
    make = EMBEDDING_NETWORKS.get(name)
    if size < 1:
        raise ConfigError(f"an embedding must have 1 dimension or more, got {size}")
    with globally_seeded(seed):
        return make(size)
