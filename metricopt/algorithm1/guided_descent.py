"""Line 14: how long a guided step is, in units of the spread of phi."""

import torch

from metricopt.algorithm1.meta_trained import MetaTrained
from metricopt.algorithm1.optimizer import Guidance, MetricOptimizer
from metricopt.tasks.descent import (
    LOSS_OPTIMIZERS,
    LinearDecay,
    OptimizerFactory,
    Stepper,
)


def guided_optimizer(
    trained: MetaTrained,
    optimizer: str,
    steps: int,
    step: float,
    generator: torch.Generator,
) -> OptimizerFactory:
    """Return a factory of guided optimizers with steps that fall linearly to zero.

    Args:
        trained: the value function to follow; phi stays within its reach.
        optimizer: one of `LOSS_OPTIMIZERS`, which takes the steps on u_t.
        steps: number of steps after which the step length is zero.
        step: length of the first step, in units of the spread of phi.
        generator: source of the perturbations.
    """
    length = step * trained.spread
    # SGD gets a gradient of that length. Adam's rate gives its step that length.
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
