"""The block-diagonal map: a matrix over the outputs of a layer, as in MT-net."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from metricopt.errors import ShapeError
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Parameters
from metricopt.geometry.partition import checked_blocks


class BlockDiagonal(MirrorMap):
    """g(z) = T T^T z for every block, T a square matrix over the first axis.

    The first axis of a layer's weight, bias and batch norm is its outputs, n of them;
    the tensors of a block share T, of shape [n, n]. It is the gradient of
    h*(z) = z^T P z / 2, where P = T T^T on each block, so it is increasing in the
    operator sense as long as every T is regular, and globally Lipschitz.

    Args:
        parameters: names and shapes of the parameters of a task.
        blocks: names of the tensors that share a matrix; by default each has its own.

    Raises:
        ConfigError: if the blocks do not hold every parameter exactly once.
        ShapeError: if the tensors of a block differ in the size of the first axis.

    Source: Lee and Choi, ICML 2018 (MT-net): a layer computes T w x, and w descends, so
    T w steps by T T^T times the gradient. Differs: no random mask of what descends, so
    this is their T-net.
    """

    linear = True

    def __init__(
        self,
        parameters: Parameters,
        blocks: Sequence[Sequence[str]] | None = None,
    ) -> None:
        super().__init__(parameters)
        alone = [(name,) for name in self.shapes.names]
        self.blocks = checked_blocks(self.shapes, alone if blocks is None else blocks)
        self.factors = nn.ParameterList(
            torch.eye(self._outputs(block)) for block in self.blocks
        )

    def _outputs(self, block: Sequence[str]) -> int:
        shapes = self.shapes.by_name
        sizes = {name: int((*shapes[name], 1)[0]) for name in block}
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise ShapeError(
                f"tensors that share a matrix must have as many outputs, got {found}"
            )
        return sizes[block[0]]

    def _primal(self, z: Tensor) -> Tensor:
        return self._by_tensor(z, [factor @ factor.T for factor in self.factors])

    def _dual(self, phi: Tensor) -> Tensor:
        return self._by_tensor(phi, map(_inverse_square, self.factors))

    def _by_tensor(self, vector: Tensor, matrices: Iterable[Tensor]) -> Tensor:
        pieces = self.shapes.pieces(vector)
        for block, matrix in zip(self.blocks, matrices, strict=True):
            for name in block:
                rows = pieces[name].reshape(len(matrix), -1)
                pieces[name] = (matrix @ rows).reshape(-1)
        return torch.cat(list(pieces.values()))

    def _log_det(self, z: Tensor) -> Tensor:
        terms = []
        for block, factor in zip(self.blocks, self.factors, strict=True):
            columns = sum(self.shapes.sizes(block)) // len(factor)
            terms.append(2 * columns * torch.linalg.slogdet(factor).logabsdet)
        return torch.stack(terms).sum()


def _inverse_square(factor: Tensor) -> Tensor:
    inverse: Tensor = torch.linalg.inv(factor)
    return inverse.T @ inverse
