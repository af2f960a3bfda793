"""A map that is the gradient of a convex potential, so mirror descent in full."""

import torch
from torch import Tensor, nn

from metricopt.errors import DivergedError, require_counts
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Parameters

NEWTON_STEPS = 40
"""Steps of the inverse; the last ones change nothing, which costs little: [r, r]."""
HALVINGS = 12
"""How often a Newton step may be halved."""
ROUNDING = 1e3
"""Largest error that counts as solved, in units of rounding."""


class ExactPotential(MirrorMap):
    """g(z) = D z + W^T tanh(W z + b) + m, with D = diag(exp(l)).

    It is the gradient of h*(z) = z^T D z / 2 + sum log cosh(W z + b) + m^T z. Its
    Jacobian D + W^T diag(1 - tanh^2) W is symmetric, so the poster's lemma holds
    in full: g is increasing in the operator sense, strongly with min(D), and globally
    Lipschitz with max(D) + norm(W)^2.

    W is zero at first, so g is the identity exactly. It is no stationary point: b is
    drawn, and the gradient of W has the factor tanh(b).

    Args:
        parameters: names and shapes of the parameters of a task.
        rank: rows r of W, at least 1.
        generator: draws b from a standard normal; torch's own by default.

    Attributes:
        log_scale: l, shape [d].
        weight: W, shape [r, d].
        bias: b, shape [r].
        shift: m, shape [d].

    Raises:
        ConfigError: if the rank is below 1.

    Source: "research outlook: model h*" of arXiv 2312.13486. Differs: the poster gives
    no form of h*, so this one is ours.
    """

    def __init__(
        self,
        parameters: Parameters,
        rank: int = 64,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(parameters)
        require_counts("ExactPotential", {"rank": rank}, "rank")
        size = self.shapes.size
        self.log_scale = nn.Parameter(torch.zeros(size))
        self.weight = nn.Parameter(torch.zeros(rank, size))
        self.bias = nn.Parameter(torch.randn(rank, generator=generator))
        self.shift = nn.Parameter(torch.zeros(size))

    def _primal(self, z: Tensor) -> Tensor:
        bend = (self.weight @ z + self.bias).tanh() @ self.weight
        return self.log_scale.exp() * z + bend + self.shift

    def _dual(self, phi: Tensor) -> Tensor:
        """Solve for y = W z + b, which has r coordinates; z follows from it.

        y + A tanh(y) = c with A = W D^-1 W^T, by damped Newton steps. They start at 0:
        where tanh is flat, at large y, a Newton step points far beyond the root.
        """
        scaled = self.weight / self.log_scale.exp()
        gram, target = scaled @ self.weight.T, scaled @ (phi - self.shift) + self.bias
        with torch.no_grad():
            y = torch.zeros_like(target)
            for _ in range(NEWTON_STEPS):
                y = _damped_step(y, gram, target)
            _check_solved(y, gram, target)
        # Two steps from the root have the derivatives of the root, up to the third.
        for _ in range(2):
            y = y - _newton_step(y, gram, target)
        return (phi - self.shift) / self.log_scale.exp() - y.tanh() @ scaled

    def _log_det(self, z: Tensor) -> Tensor:
        gram = self.weight / self.log_scale.exp() @ self.weight.T
        jacobian = _jacobian(self.weight @ z + self.bias, gram)
        bend: Tensor = torch.linalg.slogdet(jacobian).logabsdet
        return self.log_scale.sum() + bend

    def _scales(self, z: Tensor) -> Tensor:
        return self.log_scale.exp()


def _residual(y: Tensor, gram: Tensor, target: Tensor) -> Tensor:
    """Return y + A tanh(y) - c for rows y, shape [..., r]."""
    return y + y.tanh() @ gram - target


def _jacobian(y: Tensor, gram: Tensor) -> Tensor:
    slope = 1 - y.tanh().square()
    return torch.eye(len(gram), dtype=gram.dtype, device=gram.device) + gram * slope


def _newton_step(y: Tensor, gram: Tensor, target: Tensor) -> Tensor:
    residual = _residual(y, gram, target)
    step: Tensor = torch.linalg.solve(_jacobian(y, gram), residual)
    return step


def _damped_step(y: Tensor, gram: Tensor, target: Tensor) -> Tensor:
    """Return y after the Newton step, halved as often as leaves the least residual."""
    halves = 2.0 ** -torch.arange(HALVINGS, dtype=y.dtype, device=y.device)
    stay = torch.zeros_like(halves[:1])
    tried = y - torch.cat([halves, stay])[:, None] * _newton_step(y, gram, target)
    best = _residual(tried, gram, target).square().sum(1).argmin()
    # Not indexed: under `vmap` an index has no value.
    return tried.index_select(0, best.reshape(1))[0]


def _check_solved(y: Tensor, gram: Tensor, target: Tensor) -> None:
    size = 1 + target.abs().amax() + gram.abs().sum(1).amax()
    error = _residual(y, gram, target).abs().amax() / size
    left = torch.func.debug_unwrap(error).max().item()
    allowed = ROUNDING * torch.finfo(y.dtype).eps
    if left > allowed:
        raise DivergedError(
            f"the inverse of ExactPotential must leave a relative error below "
            f"{allowed:.1g}, got {left:.1g}; use double precision or smaller weights"
        )
