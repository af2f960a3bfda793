"""Lines 11 to 14: the guided step, as a wrapper of any torch optimizer over phi.

One changed line turns a PyTorch training loop into one that follows the metric:

    optimizer = MetricOptimizer(torch.optim.SGD([phi], lr=1.0), value_function)
    loss = task.losses(phi, generator).sum()
    loss.backward()
    optimizer.step()

Source: Huang et al., CVPR 2021, Alg. 1, lines 11-14.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.algorithm1.guided_es import (
    descent_estimate,
    sample_perturbations,
    subspace_basis,
)
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
from metricopt.process.keeping import one_thread


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
        optimizer: any torch optimizer over a single parameter phi, [d] or [B, d].
        value_function: predicts the cost of phi; used in evaluation mode.
        guidance: settings of the search.
        generator: source of the perturbations; None for a new one with seed 0.

    Raises:
        ConfigError: if the optimizer holds more than one parameter.
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
        self.optimizer = optimizer
        self.value_function = value_function.eval()
        self.guidance = guidance or Guidance()
        self.generator = generator or torch.Generator().manual_seed(0)
        self.phi: Tensor = parameters[0]
        rows = self.phi.numel() // self.phi.shape[-1]
        normal = torch.randn(rows, 1, generator=self.generator)
        self._lengths = (self.guidance.jitter * normal).exp()
        self._history: deque[Tensor] = deque(maxlen=self.guidance.history)
        # The same optimizer on a copy of phi shows where the loss alone would go.
        self._shadow = torch.nn.Parameter(self.phi.detach().clone())
        group = {**optimizer.param_groups[0], "params": [self._shadow]}
        same_kind: Callable[..., torch.optim.Optimizer] = type(optimizer)
        self._loss_optimizer = same_kind([group])

    def zero_grad(self, *, set_to_none: bool = True) -> None:
        """Clear the gradient of phi."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

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
