"""A context that leaves the user's network and process as they were."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

import torch
from torch import nn

from metricopt.process.seeding import KeptRandomState


class KeptProcess:
    """A context that puts back what working on a network changes.

    These are the training flag of every module, `requires_grad` of every parameter and
    the global random states. Inside, gradients are recorded even where the caller's
    `torch.no_grad()` or `torch.inference_mode()` forbids it. It is a class for the
    reason that `KeptRandomState` gives.

    Args:
        network: the user's network.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network

    def __enter__(self) -> Self:
        self._training = [(each, each.training) for each in self._network.modules()]
        self._learning = [
            (each, each.requires_grad) for each in self._network.parameters()
        ]
        self._inside = ExitStack()
        self._inside.enter_context(KeptRandomState())
        self._inside.enter_context(torch.inference_mode(False))
        self._inside.enter_context(torch.enable_grad())
        if any(map(_is_compiled, self._network.modules())):
            # Compiled code does not see the hooks that work on the network puts in.
            self._inside.enter_context(torch.compiler.set_stance("force_eager"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._inside.close()
        for module, training in self._training:
            module.training = training
        for weight, learning in self._learning:
            weight.requires_grad_(learning)


def evaluating(network: nn.Module) -> list[nn.Module]:
    """Put a network in evaluation mode, and return its modules that were not.

    By their flags: layers whose `eval` also changes weights, as those of LoRA that take
    them in, stay as they are.
    """
    training = [module for module in network.modules() if module.training]
    for module in training:
        module.training = False
    return training


def _is_compiled(module: nn.Module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None
