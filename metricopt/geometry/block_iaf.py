"""The poster's map: block-wise inverse autoregressive flow, `BlockIAF`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from metricopt.errors import require_choice, require_kind
from metricopt.geometry.conditioners import Conditioner, Dense, Kronecker
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Parameters, parameter_shapes
from metricopt.geometry.partition import (
    checked_blocks,
    consecutive_blocks,
    layer_blocks,
)
from metricopt.geometry.scale import Scale, log_scale, scale

DENSE_UP_TO = 2000
"""Parameters for which the conditioners are dense unless others are asked for."""


class BlockIAF(MirrorMap):
    """g(z)_i = z_i s_i + mu_i on block i; s_i and mu_i depend on the blocks before i.

    (a_i, mu_i) = d_i(e_1(z_1), ..., e_{i-1}(z_{i-1})) and s_i = scale(a_i) > 0, with an
    encoder e and a decoder d for every block that needs one. The first block has free
    vectors a_1 and mu_1. A single block is Meta-SGD with a shift.

    The poster's lemma says: for any partition, g is increasing and Lipschitz
    continuous. What holds:

    * The Jacobian is block lower triangular, with positive diagonal blocks on the
      diagonal. So g is a bijection, and every output increases in its own coordinate
      of z while the blocks before are fixed. In this sense g is increasing.
    * g is Lipschitz on every bounded set. It is not globally Lipschitz, not even with a
      bounded scale: z_i times the derivative of s_i grows with z_i.

    What does not hold:

    * g need not be monotone as an operator: (g(z) - g(y))^T (z - y) can be negative, as
      for g(z) = (z_1, z_2 + 3 z_1) and a difference of (1, -1). Then a step can ascend,
      however small the rate is; `step_cosines` shows whether it does.
    * The Jacobian is symmetric only where it is diagonal. So g is not the gradient of
      any h*, except with constant conditioners, and the dual iteration is gradient
      descent with a preconditioner that is not symmetric.

    Args:
        parameters: names and shapes of the parameters of a task.
        blocks: names of the tensors of every block, the first block first; by default
            a block for every layer.
        scale: from a to the scale: "2-sigmoid" in (0, 2), "exp" or "clamped-exp".
        conditioner: makes encoders and decoders; by default `Dense()` for up to 2000
            parameters, `Kronecker()` for more.
        generator: draws the weights; torch's own by default.

    Attributes:
        blocks: names of the tensors of every block.
        first_a, first_shift: a_1 and mu_1, one number a coordinate of the first block.

    Raises:
        ConfigError: if the blocks do not hold every parameter exactly once, or the
            scale or the conditioner is not known.

    Source: Zhang, Li, Giannakis, arXiv 2312.13486, "Learning inverse mirror map with a
    NN model". Differs: heads of two or more modes can learn, the default scale is
    bounded as the poster asks, one block is enough; see `released_block_iaf`.
    """

    def __init__(
        self,
        parameters: Parameters,
        blocks: Sequence[Sequence[str]] | None = None,
        *,
        scale: Scale = "2-sigmoid",
        conditioner: Conditioner | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(parameters)
        require_choice("scale", scale, Scale)
        given = layer_blocks(self.shapes) if blocks is None else blocks
        self.blocks = checked_blocks(self.shapes, given)
        self.scale: Scale = scale
        self._sizes = [sum(self.shapes.sizes(block)) for block in self.blocks]
        self.first_a = nn.Parameter(torch.zeros(self._sizes[0]))
        self.first_shift = nn.Parameter(torch.zeros(self._sizes[0]))
        if conditioner is None:
            small = self.shapes.size <= DENSE_UP_TO
            conditioner = Dense() if small else Kronecker()
        expected = "Kronecker(...) or Dense(...)"
        require_kind("conditioner", conditioner, Conditioner, expected)
        self._condition(conditioner, generator)

    def _condition(
        self, conditioner: Conditioner, generator: torch.Generator | None
    ) -> None:
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        shapes = [[self.shapes.by_name[name] for name in b] for b in self.blocks]
        context = 0
        for before, block in pairwise(shapes):
            encoder, size = conditioner.encoder(before, generator)
            context += size
            self.encoders.append(encoder)
            self.decoders.append(conditioner.decoder(context, block, generator))

    def _primal(self, z: Tensor) -> Tensor:
        blocks = self._split(z)
        terms = zip(blocks, self._terms(blocks), strict=True)
        return self._joined(
            [block * scale(self.scale, a) + shift for block, (a, shift) in terms]
        )

    def _dual(self, phi: Tensor) -> Tensor:
        blocks: list[Tensor] = []
        terms = self._terms(blocks)
        for image in self._split(phi):
            # The terms of a block read the blocks before it, which are there by now.
            a, shift = next(terms)
            blocks.append((image - shift) / scale(self.scale, a))
        return self._joined(blocks)

    def _log_det(self, z: Tensor) -> Tensor:
        return log_scale(self.scale, self._all_a(z)).sum()

    def _scales(self, z: Tensor) -> Tensor:
        return scale(self.scale, self._all_a(z))

    def _all_a(self, z: Tensor) -> Tensor:
        return self._joined([a for a, _ in self._terms(self._split(z))])

    def _terms(self, blocks: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a and the shift of every block; the blocks before it are read late."""
        yield self.first_a, self.first_shift
        embeddings: list[Tensor] = []
        pairs = zip(self.encoders, self.decoders, strict=True)
        for place, (encoder, decoder) in enumerate(pairs):
            embeddings.append(encoder(blocks[place]))
            yield decoder(torch.cat(embeddings))

    def _split(self, vector: Tensor) -> list[Tensor]:
        pieces = self.shapes.pieces(vector)
        return [torch.cat([pieces[name] for name in block]) for block in self.blocks]

    def _joined(self, blocks: Sequence[Tensor]) -> Tensor:
        pieces: dict[str, Tensor] = {}
        for names, block in zip(self.blocks, blocks, strict=True):
            parts = block.split(self.shapes.sizes(names))
            pieces.update(zip(names, parts, strict=True))
        return torch.cat([pieces[name] for name in self.shapes.names])


def released_block_iaf(
    parameters: Parameters,
    blocks: Sequence[Sequence[str]] | None = None,
    *,
    generator: torch.Generator | None = None,
) -> BlockIAF:
    """Return `BlockIAF` as the authors released it.

    The scale is exp, which is not bounded, and all matrices of a head are zero. A head
    of two or more modes then never moves, and what feeds it gets no gradient from it:
    the weights of convolutions and of the classifier learn a constant log-scale and
    shift only.

    Args:
        parameters: names and shapes of the parameters of a task.
        blocks: names of the tensors of every block; by default four a block.
        generator: draws the weights; torch's own by default.

    Raises:
        ConfigError: if the blocks do not hold every parameter exactly once.

    Source: zhangyilang/MetaMirrorDescent, src/meta_mirror_descent.py. Differs: has an
    inverse and a log-determinant, takes one block, and names with an underscore.
    """
    shapes = parameter_shapes(parameters)
    return BlockIAF(
        shapes,
        consecutive_blocks(shapes) if blocks is None else blocks,
        scale="exp",
        conditioner=Kronecker(heads="all-modes-zero"),
        generator=generator,
    )
