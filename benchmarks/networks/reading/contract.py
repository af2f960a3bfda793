"""The contract of readers: from characters to scores of both ends of an answer."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.networks.contract import Pretrained
from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry

SEGMENTS, MATCHES = 3, 4
"""Nothing, question, paragraph; and how many characters in a row the question has."""


@dataclass(frozen=True)
class ReaderSize:
    """How large a reader is.

    Attributes:
        width: size of the vector at every place.
        layers: transformer layers.
        heads: heads of attention.
        dropout: share of numbers that are dropped in training.
    """

    width: int
    layers: int
    heads: int
    dropout: float = 0.1


class ReaderBody(nn.Module):
    """A transformer over the characters of question and paragraph.

    Inputs are int64 [N, 3, L]: characters by number, 0 where there is none; segments;
    and matches with the question.

    Args:
        vocabulary: numbers of characters.
        length: most places L.
        size: how large it is.

    Source: Vaswani et al., NeurIPS 2017; Devlin et al., NAACL 2019.
    """

    def __init__(self, vocabulary: int, length: int, size: ReaderSize) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, size.width, padding_idx=0)
        self.segments = nn.Embedding(SEGMENTS, size.width)
        self.matches = nn.Embedding(MATCHES, size.width)
        self.places = nn.Parameter(0.02 * torch.randn(length, size.width))
        # Neighbours first: characters are not words.
        self.near = nn.Conv1d(size.width, size.width, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size.width,
                size.heads,
                4 * size.width,
                size.dropout,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(size.layers)
        )
        for layer in self.layers:
            # Where attention drops nothing, a step takes half as long on a processor.
            layer.self_attn.dropout = 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        """Return a vector of every place, shape [N, L, E]."""
        ids, segments, matches = inputs.unbind(1)
        hidden = self.characters(ids) + self.segments(segments) + self.matches(matches)
        hidden = hidden + self.places[: ids.shape[1]]
        hidden = hidden + self.near(hidden.mT).relu().mT
        empty = ids == 0
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=empty)
        return hidden


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


def reader(vocabulary: int, length: int, size: ReaderSize) -> Reader:
    """Return a reader of a size."""
    return with_ends(ReaderBody(vocabulary, length, size), size.width)


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
