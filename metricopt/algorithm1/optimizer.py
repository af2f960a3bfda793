"""Lines 11 to 14: the guided step, as a wrapper of any torch optimizer over phi.

One changed line turns a PyTorch training loop into one that follows the metric:

    optimizer = MetricOptimizer(torch.optim.SGD([phi], lr=1.0), value_function)
    loss = task.losses(phi, generator).sum()
    loss.backward()
    optimizer.step()

Source: Huang et al., CVPR 2021, Alg. 1, lines 11-14, eq. (3) and (4);
Maheswaranathan et al., ICML 2019. Everything is batched over rows of phi.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError, require_kind
from metricopt.geometry.mirror_optimizer import MirrorOptimizer
from metricopt.process.keeping import one_thread

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


def _alike(
    optimizer: torch.optim.Optimizer, phi: torch.nn.Parameter
) -> torch.optim.Optimizer:
    """Return an optimizer of the same kind, with the same settings, of another phi."""
    over: Callable[..., torch.optim.Optimizer] | None = getattr(optimizer, "over", None)
    if over is not None:
        return over(phi)
    kind: Callable[..., torch.optim.Optimizer] = type(optimizer)
    return kind([{**optimizer.param_groups[0], "params": [phi]}])


def _shares(basis: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of I and of U U' in Sigma, each of shape [B, 1, 1]."""
    columns = (basis.square().sum(1) > 0.5).sum(1).to(basis.dtype)[:, None, None]
    isotropic = (1.0 - 0.5 * columns.clamp_max(1)) / basis.shape[1]
    return isotropic, 0.5 / columns.clamp_min(1)


@dataclass(frozen=True)
class Guidance:
    """Settings of the guided step; the defaults are the paper's where it gives any.

    Attributes:
        history: past loss gradients k that span the subspace.
        pairs: antithetic perturbations P.
        variance: s^2 of the perturbations.
        length: length of the gradient handed to the optimizer; None hands over u_t
            as it is, which makes the right learning rate depend on the metric.
        jitter: each row's length is multiplied once by exp(jitter * normal), so that
            trajectories made for training cover a range of lengths.
        radius: phi is kept within this distance of `ValueFunction.phi_mean`, the
            region the value function knows; None for no bound.
    """

    history: int = 3
    pairs: int = 3
    variance: float = 0.01
    length: float | None = None
    jitter: float = 0.0
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.history < 1 or self.pairs < 1 or self.variance <= 0:
            raise ConfigError(
                "guidance needs history >= 1, pairs >= 1 and variance > 0, got "
                f"{self.history}, {self.pairs} and {self.variance}"
            )


class MetricOptimizer:
    """Replaces the loss gradient by the value function's descent direction u_t.

    The loss enters through the subspace that guides the search. The past k steps that
    the wrapped optimizer would have taken on the loss gradient alone span it; for SGD
    these are the gradients, up to length. The wrapped optimizer then steps on u_t.

    Args:
        optimizer: any torch optimizer over a single parameter phi, [d] or [B, d]; a
            `MirrorOptimizer` for steps in a learned geometry; a `LearnedStepper` for a
            learned optimizer, which wants `see` to be called before every step.
        value_function: predicts the cost of phi; used in evaluation mode.
        guidance: settings of the search.
        generator: source of the perturbations; None for a new one with seed 0.

    Raises:
        ConfigError: if the optimizer holds more than one parameter, or the value
            function is none.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        value_function: ValueFunction,
        *,
        guidance: Guidance | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if len(parameters) != 1:
            raise ConfigError(
                "MetricOptimizer wraps an optimizer over phi alone, got one over "
                f"{len(parameters)} parameters"
            )
        kind = "a ValueFunction of phi"
        require_kind("value_function", value_function, ValueFunction, kind)
        self.optimizer = optimizer
        self.value_function = value_function.eval()
        self.guidance = guidance or Guidance()
        self.generator = generator or torch.Generator().manual_seed(0)
        self.phi: Tensor = parameters[0]
        rows = self.phi.numel() // self.phi.shape[-1]
        normal = torch.randn(rows, 1, generator=self.generator)
        self._lengths = (self.guidance.jitter * normal).exp()
        self._history: deque[Tensor] = deque(maxlen=self.guidance.history)
        # The same optimizer on a copy of phi shows where the loss alone would go. A
        # geometry bends steps, but what spans the search are gradients in phi.
        plain = optimizer
        if isinstance(optimizer, MirrorOptimizer):
            plain = optimizer.optimizer
        self._shadow = torch.nn.Parameter(self.phi.detach().clone())
        self._loss_optimizer = _alike(plain, self._shadow)

    def zero_grad(self, *, set_to_none: bool = True) -> None:
        """Clear the gradient of phi."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

    @property
    def wants_metric(self) -> bool:
        """Whether the next step is one that is shown a new value of the metric."""
        return bool(getattr(self.optimizer, "wants_metric", False))

    def see(self, **shown: Tensor | float | None) -> None:
        """Show loss or metric to a learned optimizer; see `LearnedStepper.see`.

        Other optimizers have no use for either.
        """
        for each in (self.optimizer, self._loss_optimizer):
            see = getattr(each, "see", None)
            if see is not None:
                see(**shown)

    @torch.no_grad()
    def step(self) -> None:
        """Move phi by one guided step; phi.grad must hold the loss gradient."""
        if self.phi.grad is None:
            raise ConfigError("phi has no gradient: call loss.backward() before step()")
        with one_thread():
            self._step(self.phi.grad)

    def _step(self, gradient: Tensor) -> None:
        self._history.append(self._loss_step(gradient))
        rows = self.phi.detach().reshape(-1, self.phi.shape[-1])
        direction = self.direction(rows)
        gradient.copy_(direction.view_as(self.phi))
        self.optimizer.step()
        self._stay_within_reach()

    def direction(self, phi: Tensor) -> Tensor:
        """Return u_t, eq. (4), at phi [B, d], scaled to `guidance.length` if set."""
        settings = self.guidance
        basis = subspace_basis(torch.stack(list(self._history), dim=1))
        delta = sample_perturbations(
            basis, settings.pairs, settings.variance, self.generator
        )
        estimate = descent_estimate(self.value_function, phi, delta, settings.variance)
        if settings.length is None:
            return estimate
        length = settings.length * self._lengths
        scaled: Tensor = estimate * (
            length / estimate.norm(dim=1, keepdim=True).clamp_min(1e-30)
        )
        return scaled

    def _loss_step(self, gradient: Tensor) -> Tensor:
        """Return the step the wrapped optimizer takes on the loss, [B, d]."""
        before = self.phi.detach()
        self._shadow.data.copy_(before)
        self._shadow.grad = gradient.clone()
        self._loss_optimizer.step()
        return (self._shadow.detach() - before).reshape(-1, before.shape[-1])

    def _stay_within_reach(self) -> None:
        radius = self.guidance.radius
        if radius is None:
            return
        offset = self.phi - self.value_function.phi_mean
        distance = offset.norm(dim=-1, keepdim=True)
        shrink = (radius / distance.clamp_min(1e-30)).clamp_max(1.0)
        self.phi.copy_(self.value_function.phi_mean + offset * shrink)
