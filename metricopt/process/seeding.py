"""Seeds as hashes of names, so that adding one run never shifts another."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

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

    Dropout and torch's weight initialisation use no other source of randomness. The
    generator of a device is seeded, too, if it is a GPU.
    """
    gpus = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        torch.manual_seed(seed)
        yield


class Seeds:
    """Seeds of everything random in one run or task, one seed per purpose.

    The names identify it, such as problem and replicate.
    """

    def __init__(self, *names: object) -> None:
        self.names = names

    def seed(self, *purpose: object) -> int:
        """Return the seed of a purpose, in [0, 2**63)."""
        return derive_seed(*self.names, *purpose)

    def generator(self, *purpose: object) -> torch.Generator:
        """Return a fresh generator on the CPU for a purpose."""
        return make_generator(*self.names, *purpose)
