"""Optimizers of torch that do not load its compiler, which takes seconds.

torch loads its compiler to tell it to keep out where a group of parameters is added,
gradients are reset, or Adam takes a step. A first call of `tune` would wait for that.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import LBFGS, Adam, Optimizer


class _Light(Optimizer):
    """An optimizer without what torch tells its compiler."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; see torch."""
        inspect.unwrap(Optimizer.add_param_group)(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset all gradients; see torch."""
        inspect.unwrap(Optimizer.zero_grad)(self, set_to_none)


class LightAdam(_Light, Adam):
    """Adam, with the same steps."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; see torch."""
        return inspect.unwrap(Adam.step)(self, closure)


class LightLBFGS(_Light, LBFGS):
    """L-BFGS, with the same steps."""
