"""The contract of readers: from characters to scores of both ends of an answer."""

from collections.abc import Callable

from torch import Tensor, nn

from benchmarks.networks.contract import Pretrained
from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

NOWHERE, QUESTION, PARAGRAPH = SEGMENTS = range(3)
"""What a place belongs to."""
MATCHES = 4
"""From 0 to 3: how many characters in a row the question has, too."""


class Ends(nn.Linear):
    """From vectors [N, L, E] to scores of first and last place, [N, 2, L]."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the scores."""
        return super().forward(hidden).mT


class Reader(nn.Sequential):
    """A network from inputs [N, 3, L] to scores [N, 2, L].

    Attributes:
        sites: where FiLM stands by default: after the last normalisation, so that
            nearly everything is computed once and cached.
        pretrained: the weights it may start from; None if there are none.
    """

    sites = ("norm",)
    pretrained: Pretrained | None = None


def with_ends(body: nn.Module, width: int) -> Reader:
    """Return a reader from what makes vectors [N, L, E] of its inputs, E the width."""
    network = Reader()
    network.add_module("body", body)
    network.add_module("norm", nn.LayerNorm(width))
    network.add_module("ends", Ends(width, 2))
    return network


READERS: Registry[Callable[[int, int], Reader]] = Registry(
    "reader", "benchmarks.networks.reading"
)
"""From numbers of characters and places to a network."""


def build_reader(name: str, vocabulary: int, length: int, seed: int) -> Reader:
    """Return a reader with random weights, drawn from a seed of its own.

    Raises:
        ConfigError: if there is no such network, or there are too few characters.
    """
    make = READERS.get(name)
    if vocabulary < 3 or length < 4:
        raise ConfigError(
            "a reader needs 3 characters and 4 places or more, got "
            f"{vocabulary} and {length}"
        )
    with globally_seeded(seed):
        return make(vocabulary, length)
