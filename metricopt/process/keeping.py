"""Contexts that leave the user's network and process as they were.

They are exit stacks: a generator would assign to exceptions that pass through, which
some refuse.
"""

import random
import threading
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor, nn


class RandomStates:
    """The global random states, kept while anybody in this process may change them."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._undo: ExitStack[None] = ExitStack()

    def keep(self) -> None:
        """Keep the states, unless others do that already."""
        with self._lock:
            if not self._users:
                self._read()
            self._users += 1

    def put_back(self) -> None:
        """Put the states back, unless others still work."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._undo.close()

    def _read(self) -> None:
        stack = self._undo
        stack.callback(torch.set_rng_state, torch.get_rng_state())
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(random.setstate, random.getstate())
        if torch.cuda.is_initialized():
            states = torch.cuda.get_rng_state_all()
            stack.callback(torch.cuda.set_rng_state_all, states)


RANDOM_STATES = RandomStates()


def kept_process(network: nn.Module) -> ExitStack:
    """Put back, at the end of the context, what working on a network changes.

    These are the training flag of every module, its buffers (but for sparse ones, and
    unsaved ones that it replaces), `requires_grad` of every parameter, and the global
    random states of torch, numpy and Python, from which models and metrics may draw.
    Where contexts of several threads overlap, the states are those from before the
    first of them, and are put back after the last. Inside, gradients are recorded even
    where the caller's `torch.no_grad()` or `torch.inference_mode()` forbids it.
    """
    stack: ExitStack[None] = ExitStack()
    with stack:
        for module in network.modules():
            stack.callback(setattr, module, "training", module.training)
            for name, buffer in module.named_buffers(
                recurse=False, remove_duplicate=False
            ):
                if buffer.layout == torch.strided:  # others cannot be compared
                    before = buffer.detach().clone()
                    stack.callback(_put_back, module, name, buffer, before)
        for weight in network.parameters():
            stack.callback(weight.requires_grad_, weight.requires_grad)
        RANDOM_STATES.keep()
        stack.callback(RANDOM_STATES.put_back)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if any(getattr(m, "_compiled_call_impl", None) for m in network.modules()):
            # Compiled code does not see the hooks that work on the network puts in.
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        return stack.pop_all()


def _put_back(module: nn.Module, name: str, buffer: Tensor, before: Tensor) -> None:
    """Give a module its own buffer again, with the values from before."""
    # Unsaved buffers that were replaced stay: a module may have grown a table, and
    # noted its length. Scripted modules hand out another tensor every time.
    scripted = isinstance(module, torch.jit.ScriptModule)
    saved = not scripted and name not in module._non_persistent_buffers_set
    if saved and module._buffers.get(name) is not buffer:
        setattr(module, name, buffer)
    if not torch.equal(buffer, before):
        with torch.no_grad():
            buffer.copy_(before)


def one_thread() -> ExitStack:
    """Use one torch thread inside the context, then as many as before.

    Handing a few thousand numbers to a second thread takes longer than adding them up,
    and far longer where other processes keep the cores busy.
    """
    before, stack = torch.get_num_threads(), ExitStack()
    if before > 1:
        torch.set_num_threads(1)
        stack.callback(torch.set_num_threads, before)
    return stack


def evaluating(network: nn.Module) -> list[nn.Module]:
    """Put a network in evaluation mode, and return its modules that were not.

    By their flags: layers whose `eval` also changes weights, as those of LoRA that take
    them in, stay as they are.
    """
    training = [module for module in network.modules() if module.training]
    for module in training:
        module.training = False
    return training
