"""Fine-tuning guided by a value function: steps of a length in units of its spread."""

import torch

from metricopt.tasks.descent import (
    LOSS_OPTIMIZERS,
    LinearDecay,
    OptimizerFactory,
    Stepper,
)
from metricopt.values.meta_trained import MetaTrained
from metricopt.values.optimizer import Guidance, MetricOptimizer


def guided_optimizer(
    trained: MetaTrained,
    optimizer: str,
    steps: int,
    step: float,
    generator: torch.Generator,
) -> OptimizerFactory:
    """Return the guided optimizer of phi over so many steps, falling linearly to zero.

    Args:
        trained: what guides it; phi stays within its reach.
        optimizer: one of `LOSS_OPTIMIZERS`: takes the steps on u_t.
        steps: after which the step length is zero.
        step: length of the first step, in units of the spread of phi.
        generator: source of the perturbations.
    """
    length = step * trained.spread
    # SGD is handed a gradient of that length; Adam's own step has it.
    adam = optimizer == "adam"

    def make(phi: torch.nn.Parameter) -> Stepper:
        rate = length / phi.shape[-1] ** 0.5 if adam else 1.0
        inner = LOSS_OPTIMIZERS[optimizer]([phi], lr=rate)  # type: ignore[call-arg]
        guidance = Guidance(length=None if adam else length, radius=trained.reach)
        guided = MetricOptimizer(
            inner, trained.value_function, guidance=guidance, generator=generator
        )
        return LinearDecay(guided, inner, max(steps, 1))

    return make
