"""Digests of whatever decides a run: tensors, containers, functions, settings."""

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping, Set
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from metricopt.adapters.export import state_digest

LENGTH = 32
"""Hexadecimal digits of a digest."""
SETTING = bool | float | str
"""Types of attributes that are settings under any name."""
DEEPEST = 12
"""Levels of containers and objects that are looked into."""


def digest(value: object) -> str:
    """Return a digest that is the same for equal values, in every process.

    Args:
        value: see `plain` for what is told apart.
    """
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def plain(value: object, depth: int = DEEPEST) -> Any:
    """Return what JSON can hold of a value; large data become digests.

    Functions and classes become names. An object becomes its class and its settings:
    what its constructor takes and it holds under the same name, and numbers with a
    point, texts and flags under any name. Under other names, whole numbers and
    containers are left out: counters and logs, which change from call to call.

    Args:
        value: tensors, arrays, numbers, texts, functions, containers or objects.
        depth: levels to look into; below, only classes are told apart.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return state_digest({"tensor": value})
    if isinstance(value, np.ndarray | np.generic):
        objects = value.dtype.hasobject  # whose bytes are addresses
        content = value.tolist() if objects else value.tobytes()
        return [value.dtype.str, *value.shape, plain(content, depth)]
    if isinstance(value, bytes | bytearray):
        return hashlib.sha256(value).hexdigest()
    if depth == 0:
        return _name(value)
    return [plain(part, depth - 1) for part in _parts(value)]


def _parts(value: object) -> Iterable[object]:
    """Return what a container holds, or what makes an object differ from others."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, type) or inspect.isroutine(value):
        owner = value.__self__ if inspect.ismethod(value) else None
        return _name(value), owner
    state = state_digest(value.state_dict()) if isinstance(value, nn.Module) else None
    return _name(value), state, _settings(value)


def _settings(value: object) -> dict[str, object]:
    try:
        names = list(inspect.signature(type(value)).parameters)
    except (TypeError, ValueError):  # classes written in C have no signature
        names = []
    held = getattr(value, "__dict__", {})
    return {
        name: held[name]
        for name in sorted(held)
        if name in names or isinstance(held[name], SETTING)
    }


def _name(value: object) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return str(getattr(named, "__qualname__", type(value).__qualname__))
