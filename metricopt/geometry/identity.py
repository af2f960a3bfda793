"""The identity: gradient descent in phi itself, the geometry of MAML."""

from torch import Tensor

from metricopt.geometry.mirror_map import MirrorMap


class Identity(MirrorMap):
    """g(z) = z, without weights: mirror descent is gradient descent, bit for bit.

    It is the gradient of h*(z) = z^T z / 2.

    Source: Finn et al., ICML 2017 (MAML).
    """

    linear = True

    def _primal(self, z: Tensor) -> Tensor:
        return z

    def _dual(self, phi: Tensor) -> Tensor:
        return phi

    def _log_det(self, z: Tensor) -> Tensor:
        return z.new_zeros(())
