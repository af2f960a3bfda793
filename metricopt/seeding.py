"""Seeds as hashes of names, so that adding one run never shifts another."""

import hashlib

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
