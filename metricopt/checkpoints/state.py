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
PART = ", "
"""Between the parts of a key."""
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


def end(module: nn.Module) -> bool:
    """Forget what a training began with; return whether anything was noted.

    Another training begins with what is there now.
    """
    return vars(module).pop(BEGAN, None) is not None


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
        ConfigError: if it is of another training, or a folder.
        DataError: if it is damaged, or holds something else.
    """
    try:
        # Tensors and plain values alone: any other pickle could run code.
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = str(state["key"])
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise ConfigError(
            f"the checkpoint must be a file, got the folder {path}"
        ) from error
    except Exception as error:  # torch and pickle raise many kinds, with bad advice
        raise DataError(
            f"{path} is no complete state of a meta-training: expected tensors and "
            "plain values, got a damaged file or one that may run code; delete it to "
            "begin anew"
        ) from error
    # An earlier version knew less of a training: its key is the beginning of this one.
    if not key.startswith(found):
        raise ConfigError(
            f"{path} is of another meta-training; expected {_own_part(key, found)}, "
            f"got {_own_part(found, key)}: delete it, or choose another path"
        )
    return dict(state)


def _own_part(key: str, other: str) -> str:
    """Return the part of a key that another one does not have."""
    own, others = key.split(PART), other.split(PART)
    first = _alike(own, others)
    last = _alike(own[first:][::-1], others[first:][::-1])
    return PART.join(own[first : len(own) - last])


def _alike(parts: list[str], others: list[str]) -> int:
    """Return how many parts are the same from the first one on."""
    pairs = zip(parts, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
