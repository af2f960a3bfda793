"""The state of a training on disk, to continue from after a crash."""

import io
import pickle
from pathlib import Path
from typing import Any

import torch

from metricopt.files import write_atomically


def write_checkpoint(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write the state of a training, replacing an earlier one.

    Args:
        path: where; missing folders are made.
        key: identity of the training.
        state: what `torch.load` can read with `weights_only`.
    """
    buffer = io.BytesIO()
    torch.save({"key": key, **state}, buffer)
    write_atomically(path, buffer.getvalue())


def read_checkpoint(path: Path, key: str) -> dict[str, Any] | None:
    """Return the state in a checkpoint, on the CPU.

    Args:
        path: where it was written.
        key: identity of the training.

    Returns:
        The state; None if there is no readable checkpoint of this very training.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError):
        return None
    # A state without settings was written by an earlier form of the loop.
    known = isinstance(found, dict) and "training" in found
    return found if known and found.get("key") == key else None
