"""torch's global generator, borrowed and given back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd


class GlobalRandomness:
    """A state of torch's global generator, which is set only while it is in use.

    Dropout and the random weights of new layers use no other source of randomness.

    Args:
        seed: seed of the first state.
        device: where the network is; its generator is borrowed, too.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._devices):
            torch.manual_seed(seed)
            self._states = self._current()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Continue the last use inside the context; restore all else afterwards."""
        with torch.random.fork_rng(self._devices):
            self._set()
            try:
                yield
            finally:
                self._states = self._current()

    def state(self) -> list[Tensor]:
        """Return the states of the CPU and then of the device."""
        return self._states

    def restore(self, state: list[Tensor]) -> None:
        """Continue from a state.

        Raises:
            RuntimeError, TypeError, ValueError: if it is none.
        """
        self._states = state
        with self.in_use():  # torch looks at a state when it is set
            pass

    def _current(self) -> list[Tensor]:
        on_devices = [torch.cuda.get_rng_state(device) for device in self._devices]
        return [torch.get_rng_state(), *on_devices]

    def _set(self) -> None:
        torch.set_rng_state(self._states[0])
        for device, state in zip(self._devices, self._states[1:], strict=True):
            torch.cuda.set_rng_state(state, device)


def draws_globally(network: nn.Module) -> bool:
    """Return whether a network uses torch's global generator in training.

    Layers for dropout do, and any module that says so by an attribute `draws_globally`.
    """
    kinds: Any = _DropoutNd
    return any(
        isinstance(layer, kinds) or getattr(layer, "draws_globally", False)
        for layer in network.modules()
    )
