"""Optimizers of phi by name: what SGD and Adam are to the steps of every method."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from metricopt.registry import Registry


class PhiOptimizer(ABC):
    """An optimizer of phi with one rate, which is tuned for each task.

    Attributes:
        own_length: whether every coordinate moves by about the rate, however long the
            gradient is, as with Adam.
    """

    own_length: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def make(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
        """Return an optimizer of phi [..., d], which will take so many steps."""


PHI_OPTIMIZERS: Registry[type[PhiOptimizer]] = Registry(
    "optimizer of phi", "metricopt.tasks", base=PhiOptimizer
)
"""One of another package is here by an entry point, or once it is imported."""


@PHI_OPTIMIZERS.register("sgd")
class _SGD(PhiOptimizer):
    @staticmethod
    def make(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
        return torch.optim.SGD([phi], lr=rate)


@PHI_OPTIMIZERS.register("momentum")
class _Momentum(PhiOptimizer):
    @staticmethod
    def make(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
        return torch.optim.SGD([phi], lr=rate, momentum=0.9)


@PHI_OPTIMIZERS.register("adam")
class _Adam(PhiOptimizer):
    own_length = True

    @staticmethod
    def make(phi: torch.nn.Parameter, rate: float, steps: int) -> torch.optim.Optimizer:
        return torch.optim.Adam([phi], lr=rate)
