"""Kronecker layers: encoders and decoders that act on each mode of a large tensor.

A dense layer on the 36,864 weights of a convolution is too wide. A Kronecker layer
multiplies every mode of a tensor by a small matrix of its own.

Source: released code of Zhang et al., arXiv 2312.13486. Differs: heads can learn.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

Heads = Literal["first-mode-zero", "all-modes-zero"]
"""Which matrices of a head are zero at first. With all of them zero, as released, a
head of two or more modes never moves: the gradient of each holds the others as
factors. With the first one zero the head is zero as well, but it learns."""


def modes(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the modes of a tensor: at most three, the kernel's positions as one."""
    if len(shape) > 3:
        return (*shape[:2], math.prod(shape[2:]))
    return tuple(shape) or (1,)


def shrunk(shape: Sequence[int], factors: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the shapes before and after every layer of an encoder, largest first.

    Every layer divides each mode by its factor, rounded down, and leaves at least 1.
    """
    found = [modes(shape)]
    for factor in factors:
        found.append(tuple(max(size // factor, 1) for size in found[-1]))
    return found


def times_modes(tensor: Tensor, matrices: Iterable[Tensor]) -> Tensor:
    """Return X x_0 W_0 x_1 W_1 ...: every mode of a tensor times its matrix.

    Args:
        tensor: X, shape [n_0, n_1, ...].
        matrices: W_i, shape [m_i, n_i] each, one for every mode.

    Returns:
        Shape [m_0, m_1, ...].
    """
    # Not `tensordot`: it permutes and copies for every mode, which takes twice as long.
    last = tensor.ndim - 1
    for axis, matrix in enumerate(matrices):
        if axis == last:
            tensor = tensor @ matrix.T
        else:
            behind = tensor.shape[axis + 1 :]
            tensor = (matrix @ tensor.flatten(axis + 1)).unflatten(-1, behind)
    return tensor


class KroneckerLayer(nn.Module):
    """X x_0 W_0 x_1 W_1 ... + b, with a bias of the full shape of the output.

    The matrices are uniform in +-1/sqrt(n_i), Kaiming's with a = sqrt(5), and the bias
    is zero.

    Args:
        before: shape of X, one number a mode.
        after: shape of the output, as many numbers.
        generator: draws the matrices; torch's own by default.
    """

    def __init__(
        self,
        before: Sequence[int],
        after: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.matrices = nn.ParameterList(
            torch.empty(out, size).uniform_(
                -(size**-0.5), size**-0.5, generator=generator
            )
            for size, out in zip(before, after, strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(*after))

    def forward(self, tensor: Tensor) -> Tensor:
        """Return the product plus the bias, a tensor of shape `after`."""
        if tensor.ndim == 1:
            return torch.addmv(self.bias, self.matrices[0], tensor)
        return times_modes(tensor, self.matrices) + self.bias

    @torch.no_grad()
    def zero(self, heads: Heads) -> None:
        """Set matrices to zero so that the output is zero, whatever the input is."""
        for matrix in list(self.matrices)[: 1 if heads == "first-mode-zero" else None]:
            matrix.zero_()


class KroneckerEncoder(nn.Module):
    """Layers that shrink one tensor to an embedding, each with a ReLU behind it.

    Args:
        shape: shape of the tensor.
        factors: by how much each layer divides every mode.
        generator: draws the weights; torch's own by default.

    Attributes:
        size: numbers in the embedding.
    """

    def __init__(
        self,
        shape: Sequence[int],
        factors: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        shapes = shrunk(shape, factors)
        self.shape = shapes[0]
        self.size = math.prod(shapes[-1])
        self.layers = nn.ModuleList(
            KroneckerLayer(before, after, generator)
            for before, after in pairwise(shapes)
        )

    def forward(self, tensor: Tensor) -> Tensor:
        """Return the embedding, shape [size], of the numbers of the tensor."""
        tensor = tensor.reshape(self.shape)
        for layer in self.layers:
            tensor = layer(tensor).relu()
        return tensor.reshape(-1)


class KroneckerDecoder(nn.Module):
    """Layers that grow an input to a tensor's shape, and two heads without activation.

    A ReLU acts on the input and after every layer. The heads give a and the shift of
    every coordinate; both are zero at first.

    Args:
        shape: shape of the tensor.
        factors: those of an encoder of this tensor; the decoder mirrors it.
        heads: which matrices of the heads are zero at first.
        generator: draws the weights; torch's own by default.

    Attributes:
        size: numbers in the input.
    """

    def __init__(
        self,
        shape: Sequence[int],
        factors: Sequence[int],
        heads: Heads,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        shapes = shrunk(shape, factors)[::-1]
        self.shape = shapes[0]
        self.size = math.prod(shapes[0])
        self.layers = nn.ModuleList(
            KroneckerLayer(before, after, generator)
            for before, after in pairwise(shapes[:-1])
        )
        self.a = KroneckerLayer(shapes[-2], shapes[-1], generator)
        self.shift = KroneckerLayer(shapes[-2], shapes[-1], generator)
        self.a.zero(heads)
        self.shift.zero(heads)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return a and the shift, flat, for an input of shape [size]."""
        tensor = inputs.reshape(self.shape).relu()
        for layer in self.layers:
            tensor = layer(tensor).relu()
        return self.a(tensor).reshape(-1), self.shift(tensor).reshape(-1)
