"""The encoders and decoders of blockIAF: what conditions a block on those before it.

Two families: Kronecker layers for tensors of any size, dense layers for few parameters.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError, require_choice, require_counts
from metricopt.geometry.kronecker import Heads, KroneckerDecoder, KroneckerEncoder

Shapes = Sequence[tuple[int, ...]]
"""Shapes of the tensors of one block."""


class Conditioner(ABC):
    """Makes the encoders and decoders of blockIAF, modules both."""

    @abstractmethod
    def encoder(
        self, shapes: Shapes, generator: torch.Generator | None
    ) -> tuple[nn.Module, int]:
        """Return the encoder of a block, and the size of its embedding."""

    @abstractmethod
    def decoder(
        self, context: int, shapes: Shapes, generator: torch.Generator | None
    ) -> nn.Module:
        """Return the decoder of a block: from [context] to a and shift, flat, zero."""


@dataclass(frozen=True)
class Kronecker(Conditioner):
    """Mode-wise layers, for tensors of any size.

    Attributes:
        factors: by how much each layer of an encoder divides every mode, >= 1 each.
        heads: which matrices of a head are zero at first.

    Raises:
        ConfigError: if there is no factor, or one below 1, or another kind of heads.
    """

    factors: tuple[int, ...] = (2, 2, 2)
    heads: Heads = "first-mode-zero"

    def __post_init__(self) -> None:
        require_choice("heads", self.heads, Heads)
        if not self.factors:
            raise ConfigError("Kronecker needs at least one factor, got none")
        for factor in self.factors:
            require_counts("Kronecker", {"factors": factor}, "factors")

    def encoder(
        self, shapes: Shapes, generator: torch.Generator | None
    ) -> tuple[nn.Module, int]:
        """Return the encoders of the tensors of a block, side by side."""
        encoder = _BlockEncoder(
            [KroneckerEncoder(shape, self.factors, generator) for shape in shapes],
            [math.prod(shape) for shape in shapes],
        )
        return encoder, encoder.size

    def decoder(
        self, context: int, shapes: Shapes, generator: torch.Generator | None
    ) -> nn.Module:
        """Return a dense layer, and behind it the decoders of a block's tensors."""
        decoders = [
            KroneckerDecoder(shape, self.factors, self.heads, generator)
            for shape in shapes
        ]
        size = sum(decoder.size for decoder in decoders)
        return _BlockDecoder(_dense(context, size, generator), decoders)


@dataclass(frozen=True)
class Dense(Conditioner):
    """Perceptrons of one hidden layer, for up to some thousand parameters.

    Attributes:
        hidden: width of the hidden layer, >= 1.
        embedding: numbers in the embedding of a block, >= 1.

    Raises:
        ConfigError: if a width is below 1.
    """

    hidden: int = 32
    embedding: int = 32

    def __post_init__(self) -> None:
        require_counts("Dense", vars(self), "hidden", "embedding")

    def encoder(
        self, shapes: Shapes, generator: torch.Generator | None
    ) -> tuple[nn.Module, int]:
        """Return a perceptron from a block to its embedding."""
        size = sum(map(math.prod, shapes))
        return self._perceptron(size, self.embedding, generator), self.embedding

    def decoder(
        self, context: int, shapes: Shapes, generator: torch.Generator | None
    ) -> nn.Module:
        """Return a perceptron whose last layer is zero at first."""
        size = sum(map(math.prod, shapes))
        layers = self._perceptron(context, 2 * size, generator)
        for weight in layers[-1].parameters():
            nn.init.zeros_(weight)
        return _Halves(layers)

    def _perceptron(
        self, before: int, after: int, generator: torch.Generator | None
    ) -> nn.Sequential:
        return nn.Sequential(
            _dense(before, self.hidden, generator),
            nn.ReLU(),
            _dense(self.hidden, after, generator),
        )


class _BlockEncoder(nn.Module):
    """The encoders of a block's tensors; the embeddings are joined."""

    def __init__(
        self, encoders: Sequence[KroneckerEncoder], sizes: Sequence[int]
    ) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.sizes = list(sizes)
        self.size = sum(encoder.size for encoder in encoders)

    def forward(self, block: Tensor) -> Tensor:
        pieces = block.split(self.sizes)
        pairs = zip(self.encoders, pieces, strict=True)
        return torch.cat([encoder(piece) for encoder, piece in pairs])


class _BlockDecoder(nn.Module):
    """A dense layer, cut into the inputs of the decoders of a block's tensors."""

    def __init__(self, dense: nn.Module, decoders: Sequence[KroneckerDecoder]) -> None:
        super().__init__()
        self.dense = dense
        self.decoders = nn.ModuleList(decoders)
        self.sizes = [decoder.size for decoder in decoders]

    def forward(self, context: Tensor) -> tuple[Tensor, Tensor]:
        inputs = self.dense(context).split(self.sizes)
        pairs = zip(self.decoders, inputs, strict=True)
        found = [decoder(each) for decoder, each in pairs]
        return torch.cat([a for a, _ in found]), torch.cat([s for _, s in found])


class _Halves(nn.Module):
    """Layers whose output is a and, behind it, the shift."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, context: Tensor) -> tuple[Tensor, Tensor]:
        a, shift = self.layers(context).chunk(2)
        return a, shift


def _dense(before: int, after: int, generator: torch.Generator | None) -> nn.Linear:
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, before, after)
    for weight in layer.parameters():
        # torch's default for linear layers: uniform in +-1/sqrt(fan in).
        nn.init.uniform_(weight, -(before**-0.5), before**-0.5, generator=generator)
    return layer
