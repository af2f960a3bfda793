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


def plain(value: object, depth: int = DEEPEST, above: tuple[int, ...] = ()) -> Any:
    """Return what JSON can hold of a value; large data become digests.

    Functions and classes become names. An object becomes its class and its settings:
    what its constructor takes and it holds under the same name, an underscore apart,
    and numbers with a point, texts and flags under any name. What else it holds is left
    out: counters and logs change from call to call. An object that holds nothing by
    name, such as a path or a date, becomes what `pickle` makes of it.

    Args:
        value: tensors, arrays, numbers, texts, functions, containers or objects.
        depth: levels to look into; below, only classes are told apart.
        above: what holds the value, by identity; a part that leads back to it is named.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return state_digest({"tensor": value})
    if isinstance(value, np.ndarray | np.generic):
        objects = value.dtype.hasobject  # whose bytes are addresses
        content = value.tolist() if objects else value.tobytes()
        return [value.dtype.str, *value.shape, plain(content, depth, above)]
    if isinstance(value, bytes | bytearray):
        return hashlib.sha256(value).hexdigest()
    if depth == 0 or id(value) in above:
        return _name(value)
    inside = (*above, id(value))
    parts = [plain(part, depth - 1, inside) for part in _parts(value)]
    has_order = not isinstance(value, Mapping | Set)
    return parts if has_order else sorted(parts, key=json.dumps)


def _parts(value: object) -> Iterable[object]:
    """Return what a container holds, or what makes an object differ from others."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple | Set):
        return value
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, type) or inspect.isroutine(value):
        owner = value.__self__ if inspect.ismethod(value) else None
        return _name(value), owner
    state = state_digest(value.state_dict()) if isinstance(value, nn.Module) else None
    held = _held(value)
    own = _reduced(value) if held is None else _settings(value, held)
    return _name(value), state, own


def _settings(value: object, held: Mapping[str, object]) -> dict[str, object]:
    try:
        names = list(inspect.signature(type(value)).parameters)
    except (TypeError, ValueError):  # classes written in C have no signature
        names = []
    return {
        name: held[name]
        for name in held
        if name.removeprefix("_") in names or isinstance(held[name], SETTING)
    }


def _held(value: object) -> dict[str, object] | None:
    """Return what an object holds by name; None if only `pickle` knows."""
    state: Any = object.__getstate__(value)
    named, slots = state if isinstance(state, tuple) else (state, {})
    # Slots of classes that say what they are made of, as paths do, may be caches.
    own = type(value).__reduce__ is not object.__reduce__
    if not hasattr(value, "__dict__") and (own or not slots):
        return None
    modules = value._modules if isinstance(value, nn.Module) else {}
    return {**slots, **modules, **(named or {})}


def _reduced(value: object) -> object:
    try:
        return value.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - files, locks, and whatever a user's class raises
        return None


def _name(value: object) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return str(getattr(named, "__qualname__", type(value).__qualname__))
