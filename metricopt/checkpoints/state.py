"""The state of a meta-training on disk."""

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError
from metricopt.files import told, write_atomically

LENGTH = 12
"""Letters of a digest."""


def digest_of(tensors: Iterable[Tensor]) -> str:
    """Return what tells tensors from others, in a few letters."""
    found = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:LENGTH]


def write_state(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write a state over an earlier one, whole or not at all.

    Args:
        path: where; missing folders are made.
        key: what tells the training from others.
        state: tensors and plain values.
    """
    buffer = io.BytesIO()
    torch.save({"key": key, **state}, buffer)
    write_atomically(path, buffer.getvalue())


def read_state(path: Path, key: str) -> dict[str, Any] | None:
    """Return the state in a file, on the CPU; None if there is no file.

    Raises:
        ConfigError: if it is of another training.
        DataError: if it is damaged, or holds something else.
    """
    try:
        # Tensors and plain values alone: any other pickle could run code.
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = str(state["key"])
    except FileNotFoundError:
        return None
    except Exception as error:  # torch and pickle raise many kinds
        raise DataError(
            f"{path} is no complete state of a meta-training: {told(error)}; delete it "
            "to begin anew"
        ) from error
    # An earlier version knew less of a training: its key is the beginning of this one.
    if not key.startswith(found):
        raise ConfigError(
            f"{path} is of another meta-training; expected {key}, got {found}: delete "
            "it, or choose another path"
        )
    return dict(state)
