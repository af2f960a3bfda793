"""The Kronecker-factored map: a free matrix for every mode, as in Meta-Curvature."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from metricopt.geometry.kronecker import modes, times_modes
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Parameters


class KroneckerProduct(MirrorMap):
    """g(z) = (M_0 x M_1 x ...) z for every tensor, with a square matrix for each mode.

    A convolution's modes are its outputs, its inputs, and the positions of its kernel.
    The matrices are free: g need not be symmetric, so it need not be the gradient of
    any h*, nor increasing in the operator sense. It is linear, so it is globally
    Lipschitz, and a bijection as long as every matrix is regular.

    Source: Park and Oliva, NeurIPS 2019 (Meta-Curvature), whose step in phi is this
    product times the gradient. Differs: nothing, if both start from the same phi.
    """

    linear = True

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self.matrices = nn.ModuleList(
            nn.ParameterList(torch.eye(size) for size in modes(shape))
            for shape in self.shapes.by_name.values()
        )

    def _primal(self, z: Tensor) -> Tensor:
        return self._by_tensor(z, self._by_mode())

    def _dual(self, phi: Tensor) -> Tensor:
        inverses = ([torch.linalg.inv(m) for m in each] for each in self._by_mode())
        return self._by_tensor(phi, inverses)

    def _by_mode(self) -> Iterator[list[Tensor]]:
        for each in self.matrices:
            yield list(each.parameters())

    def _by_tensor(self, vector: Tensor, matrices: Iterable[list[Tensor]]) -> Tensor:
        pieces = self.shapes.named(vector)
        return torch.cat(
            [
                times_modes(value.reshape(modes(value.shape)), each).reshape(-1)
                for value, each in zip(pieces.values(), matrices, strict=True)
            ]
        )

    def _log_det(self, z: Tensor) -> Tensor:
        terms = [
            size // len(matrix) * torch.linalg.slogdet(matrix).logabsdet
            for size, each in zip(self.shapes.sizes(), self._by_mode(), strict=True)
            for matrix in each
        ]
        return torch.stack(terms).sum()
