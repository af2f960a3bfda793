"""Lines 11 to 13: a descent direction from values and past gradients, eq. (3) and (4).

Source: Maheswaranathan et al., ICML 2019; MetricOpt (Huang et al., CVPR 2021), eq. (3)
and (4). Everything is batched over rows of phi.
"""

from collections.abc import Callable

import torch
from torch import Tensor

# A direction that adds less than this share of its own length to the subspace is
# collinear with the others: QR would replace it by an arbitrary one.
COLLINEAR = 1e-6


def subspace_basis(history: Tensor) -> Tensor:
    """Return an orthonormal basis U of the span of past gradients [B, k, d] (line 11).

    Columns [B, d, k], at most d not zero. Zero and collinear gradients are dropped by
    zeroing their column, so that U U' is the projector on what is really spanned.
    """
    length = history.norm(dim=2, keepdim=True)
    directions = history / length.clamp_min(torch.finfo(history.dtype).tiny)
    columns: list[Tensor] = []
    # Gram-Schmidt, twice for stability: k is a handful, and columns may be dropped.
    for direction in directions.unbind(1):
        rest = direction
        for _ in range(2):
            for column in columns:
                rest = rest - (rest * column).sum(1, keepdim=True) * column
        size = rest.norm(dim=1, keepdim=True)
        columns.append(torch.where(size > COLLINEAR, rest / size.clamp_min(1e-30), 0.0))
    return torch.stack(columns, dim=2)


def search_covariance(basis: Tensor) -> Tensor:
    """Return Sigma = I / (2d) + U U' / (2k), eq. (3), shape [B, d, d]; the trace is 1.

    k is the number of directions really spanned; if there is none, Sigma = I / d.
    """
    size = basis.shape[1]
    identity = torch.eye(size, dtype=basis.dtype, device=basis.device)
    isotropic, guided = _shares(basis)
    return isotropic * identity + guided * (basis @ basis.transpose(1, 2))


def perturbations(
    basis: Tensor, noise: Tensor, subspace_noise: Tensor, variance: float
) -> Tensor:
    """Return delta ~ N(0, s^2 Sigma) [B, P, d], without forming Sigma.

    |delta| has root mean square s, the root of the variance. The noise is standard
    normal, [B, P, d] and [B, P, k]; the columns of the basis [B, d, k] are orthonormal
    or zero.
    """
    isotropic, guided = ((variance * share).sqrt() for share in _shares(basis))
    return isotropic * noise + guided * (subspace_noise @ basis.transpose(1, 2))


def descent_estimate(
    function: Callable[[Tensor], Tensor], phi: Tensor, delta: Tensor, variance: float
) -> Tensor:
    """Return the descent direction u_t [B, d] of eq. (4) at phi [B, d] (line 13).

    u = 1/(s^2 P) sum_i delta_i [f(phi + delta_i) - f(phi - delta_i)]. To minimise f,
    step along minus u. E[u] is 2 Sigma grad f for small s. The function f, of phi [M,
    d] -> [M], is deterministic; delta is [B, P, d], and s^2 the variance.
    """
    rows, count, size = delta.shape
    centre = phi[:, None, :]
    pairs = torch.cat([centre + delta, centre - delta]).reshape(-1, size)
    plus, minus = function(pairs).view(2, rows, count).unbind(0)
    estimate: Tensor = (delta * (plus - minus)[:, :, None]).sum(1)
    return estimate / (variance * count)


def sample_perturbations(
    basis: Tensor, count: int, variance: float, generator: torch.Generator
) -> Tensor:
    """Draw P perturbations per row of a basis [B, d, k], [B, P, d] (line 12)."""
    rows, size, spanned = basis.shape
    noise = torch.randn(rows, count, size, generator=generator)
    inside = torch.randn(rows, count, spanned, generator=generator)
    return perturbations(basis, noise.to(basis), inside.to(basis), variance)


def _shares(basis: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of I and of U U' in Sigma, each of shape [B, 1, 1]."""
    columns = (basis.square().sum(1) > 0.5).sum(1).to(basis.dtype)[:, None, None]
    isotropic = (1.0 - 0.5 * columns.clamp_max(1)) / basis.shape[1]
    return isotropic, 0.5 / columns.clamp_min(1)
