"""Optimizers of phi by name: what SGD and Adam are to the steps of every method."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from metricopt.registry import Registry

MakeOptimizer = Callable[[torch.nn.Parameter, float, int], torch.optim.Optimizer]
"""Makes an optimizer of phi [..., d] from phi, a rate and the number of its steps."""


@dataclass(frozen=True)
class PhiOptimizer:
    """An optimizer of phi with one rate, which is tuned for each task.

    Attributes:
        make: makes it for a phi, with a rate and for a number of steps.
        own_length: whether every coordinate moves by about the rate, however long the
            gradient is, as with Adam.
    """

    make: MakeOptimizer
    own_length: bool = False


PHI_OPTIMIZERS: Registry[PhiOptimizer] = Registry("loss optimizer", "metricopt.tasks")
"""One of another package is here once it is imported."""


def _sgd(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
    return torch.optim.SGD([phi], lr=rate)


def _momentum(
    phi: torch.nn.Parameter, rate: float, steps: int
) -> torch.optim.Optimizer:
    return torch.optim.SGD([phi], lr=rate, momentum=0.9)


def _adam(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
    return torch.optim.Adam([phi], lr=rate)


PHI_OPTIMIZERS.register("sgd")(PhiOptimizer(_sgd))
PHI_OPTIMIZERS.register("momentum")(PhiOptimizer(_momentum))
PHI_OPTIMIZERS.register("adam")(PhiOptimizer(_adam, own_length=True))
