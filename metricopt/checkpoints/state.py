"""The state of a meta-training on disk."""

import hashlib
import io
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.errors import ConfigError, DataError
from metricopt.files import write_atomically

LENGTH = 12
"""Letters of a digest."""
BEGAN = "_training_began_with"
"""Attribute of a module while it is trained."""


def digest_of(tensors: Iterable[Tensor]) -> str:
    """Return what tells tensors from others, in a few letters."""
    found = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:LENGTH]


def start_of(module: nn.Module) -> str:
    """Return what tells the weights of a module from others before its training.

    A training that was interrupted leaves later weights in the module; `begin` has
    noted what it began with.
    """
    noted = vars(module).get(BEGAN)
    return str(noted or digest_of(module.state_dict().values()))


def begin(module: nn.Module) -> None:
    """Note what the training of a module begins with, until it ends."""
    vars(module)[BEGAN] = start_of(module)


def end(module: nn.Module) -> None:
    """Forget what a training began with: another one begins with what is there now."""
    vars(module).pop(BEGAN, None)


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
    except Exception as error:  # torch and pickle raise many kinds, with bad advice
        raise DataError(
            f"{path} is no complete state of a meta-training: expected tensors and "
            "plain values, got a damaged file or one that may run code; delete it to "
            "begin anew"
        ) from error
    # An earlier version knew less of a training: its key is the beginning of this one.
    if not key.startswith(found):
        raise ConfigError(
            f"{path} is of another meta-training; expected {_from(key, found)}, got "
            f"{_from(found, key)}: delete it, or choose another path"
        )
    return dict(state)


def _from(key: str, other: str) -> str:
    """Return a key from the part in which it differs from another one."""
    pairs = zip(key, other, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return key[key.rfind(", ", 0, same) + 1 :].strip()
