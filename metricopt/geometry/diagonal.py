"""The diagonal map: one step size a coordinate, the geometry of Meta-SGD."""

import torch
from torch import Tensor, nn

from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Parameters


class Diagonal(MirrorMap):
    """g(z) = exp(l) z, coordinate by coordinate.

    Mirror descent with rate alpha steps by alpha exp(l) in phi. This is Meta-SGD with
    the step sizes alpha exp(l), if both start from the same phi: from
    z_0 = `inverse(phi_0)`. It is the gradient of h*(z) = z^T diag(exp(l)) z / 2, so it
    is increasing in the operator sense, and globally Lipschitz with max exp(l).

    Attributes:
        log_scale: l, shape [d], zero at first.

    Source: Li et al., arXiv 1707.09835 (Meta-SGD). Differs: logarithms of the step
    sizes are learned, which keeps them positive, as in the released code of Zhang et
    al., arXiv 2312.13486.
    """

    linear = True

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self.log_scale = nn.Parameter(torch.zeros(self.shapes.size))

    def _primal(self, z: Tensor) -> Tensor:
        return z * self._scales(z)

    def _dual(self, phi: Tensor) -> Tensor:
        return phi / self._scales(phi)

    def _log_det(self, z: Tensor) -> Tensor:
        return self.log_scale.sum()

    def _scales(self, z: Tensor) -> Tensor:
        return self.log_scale.exp()
