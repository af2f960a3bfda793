"""Weights that torchvision offers for a network, or for a part of it."""

from dataclasses import dataclass


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
