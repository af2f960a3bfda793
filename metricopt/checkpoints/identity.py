"""What tells an object from others of its class: its options, in a few letters."""

import hashlib
import inspect
from functools import partial
from itertools import chain
from typing import Any

from torch import Tensor, nn

from metricopt.checkpoints.state import LENGTH, digest_of

PLAIN = (type(None), bool, int, float, complex, str, bytes)
DEPTH = 6
"""Objects within objects that are looked into."""
OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def identity_of(value: object, *, weights: bool = False) -> str:
    """Return what tells a map or a loss from one with other options.

    Options are attributes, arguments bound by `partial`, defaults, and what a function
    holds as a closure: plain values, tuples, tensors, and objects with such options.
    Weights and buffers of modules are none, as training changes them, unless `weights`
    asks for them, nor are lists and dictionaries, which may be logs. Of a function's
    code, its name alone is seen.
    """
    text = _described(value, DEPTH, weights)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _described(value: object, depth: int, weights: bool) -> str:
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, Tensor):
        return digest_of([value])
    name = getattr(value, "__qualname__", type(value).__qualname__)
    options = _options(value) if depth else {}
    if weights and isinstance(value, nn.Module):
        own_weights = (value.named_parameters, value.named_buffers)
        options |= dict(chain(*(each(recurse=False) for each in own_weights)))
    inside = [
        f"{key}={_described(own, depth - 1, weights)}" for key, own in options.items()
    ]
    return f"{name}({', '.join(inside)})"


def _options(value: Any) -> dict[str, object]:
    if isinstance(value, tuple):
        return {str(place): own for place, own in enumerate(value)}
    if isinstance(value, partial):
        return {"of": value.func, "to": value.args} | value.keywords
    if isinstance(value, nn.Module):
        own = {k: v for k, v in vars(value).items() if k not in OF_EVERY_MODULE}
        return own | dict(value.named_children())
    if inspect.ismethod(value):
        return {"of": value.__self__, "by": value.__func__}
    if inspect.isfunction(value):
        held = dict(inspect.getclosurevars(value).nonlocals)
        return held | {"defaults": value.__defaults__} | (value.__kwdefaults__ or {})
    if isinstance(value, type | list | dict):
        return {}
    return dict(getattr(value, "__dict__", {}))
