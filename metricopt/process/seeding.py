"""Seeds as hashes of names, so that adding one run never shifts another."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import numpy as np
import torch


def derive_seed(*names: object) -> int:
    """Return a seed in [0, 2**63) that depends on the names and their order only."""
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_generator(
    *names: object, device: str | torch.device = "cpu"
) -> torch.Generator:
    """Return a fresh generator on `device`, seeded with `derive_seed(*names)`."""
    return torch.Generator(device).manual_seed(derive_seed(*names))


def drawn_seed(generator: torch.Generator) -> int:
    """Return a seed for a global generator, drawn from a generator on the CPU."""
    return int(torch.randint(2**62, (), generator=generator))


@contextmanager
def globally_seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generators inside a context, and put them back afterwards.

    Dropout and torch's weight initialisation use no other source of randomness.

    Args:
        seed: in [0, 2**64).
        device: device of the network; its generator is seeded, too, if it is a GPU.
    """
    gpus = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        torch.manual_seed(seed)
        yield


class Seeds:
    """Seeds of everything random in one run or task, one seed per purpose.

    Args:
        *names: what identifies it, such as problem and replicate.
    """

    def __init__(self, *names: object) -> None:
        self.names = names

    def seed(self, *purpose: object) -> int:
        """Return the seed of a purpose, in [0, 2**63)."""
        return derive_seed(*self.names, *purpose)

    def generator(self, *purpose: object) -> torch.Generator:
        """Return a fresh generator on the CPU for a purpose."""
        return make_generator(*self.names, *purpose)


class KeptRandomState:
    """A context that puts the global random states of torch, numpy and Python back.

    Packages such as `cma` draw from them, and seed them. The states of all GPUs are put
    back if a GPU is in use. It is a class, because a
    generator would assign to exceptions that pass through, which some refuse.
    """

    def __enter__(self) -> Self:
        self._torch, self._numpy = torch.get_rng_state(), np.random.get_state()
        self._python = random.getstate()
        started = torch.cuda.is_initialized()
        self._gpus = torch.cuda.get_rng_state_all() if started else []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        torch.set_rng_state(self._torch)
        np.random.set_state(self._numpy)
        random.setstate(self._python)
        torch.cuda.set_rng_state_all(self._gpus)
