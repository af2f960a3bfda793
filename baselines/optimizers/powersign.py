"""PowerSign: steps are longer where the gradient agrees with its running mean."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import require_ranges
from metricopt.tasks.phi_optimizers import PHI_OPTIMIZERS, PhiOptimizer


class PowerSign(torch.optim.Optimizer):
    """Gradient descent whose steps grow by `base` to the power of agreeing signs.

    m <- beta m + (1 - beta) g, from 0 and without a correction of the bias;
    w <- w - lr base^(f(t) sign(g) sign(m)) g, with f(t) = (1 + cos(pi t / T)) / 2 for
    step t from 0 on, and 0 from T on: there it is SGD. The published "cd".

    Args:
        params: weights, or groups of them.
        lr: rate, > 0.
        decay_steps: T >= 1; None for f = 1.
        beta: decay of the running mean, in [0, 1).
        base: factor of a step whose signs agree, > 0.
        weight_decay: factor of the weight that is added to its gradient before signs
            are taken, >= 0.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Bello et al., ICML 2017, Sec. 5. Differs: they do not say where the decay of
    weights comes in.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.1,
        decay_steps: int | None = None,
        *,
        beta: float = 0.9,
        base: float = math.e,
        weight_decay: float = 0.0,
    ) -> None:
        settings = {
            "lr": lr,
            "decay_steps": decay_steps,
            "beta": beta,
            "base": base,
            "weight_decay": weight_decay,
        }
        require_ranges(
            "PowerSign",
            settings,
            lr="> 0",
            decay_steps=">= 1",
            beta="in [0, 1)",
            base="> 0",
            weight_decay=">= 0",
        )
        super().__init__(params, settings)

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: Callable[[], Tensor] | None = None
    ) -> Tensor | None:
        """Take one step.

        Args:
            closure: computes the loss and its gradients; None where they are there.

        Returns:
            The loss of the closure, None without one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group)
        return loss

    def _move(self, weight: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(weight)
        gradient = weight.grad
        assert gradient is not None
        if group["weight_decay"]:
            gradient = gradient.add(weight, alpha=group["weight_decay"])
        mean = state["mean"].lerp_(gradient, 1 - group["beta"])
        power = _sign_decay(state["step"], group["decay_steps"])
        agreement = gradient.sign() * mean.sign()
        factor = (agreement * (power * math.log(group["base"]))).exp_()
        weight.sub_(factor.mul_(gradient), alpha=group["lr"])
        state["step"] += 1


@PHI_OPTIMIZERS.register("powersign")
class _OfPhi(PhiOptimizer):
    @staticmethod
    def make(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
        return PowerSign([phi], rate, max(1, steps))


def _sign_decay(step: int, steps: int | None) -> float:
    """Return how much signs still count, from 1 to 0 along half a cosine."""
    if steps is None:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))
