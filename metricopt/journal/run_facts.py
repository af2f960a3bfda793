"""What decides a call of `finetune`, in words and digests."""

import hashlib
import inspect
import json
import platform
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields
from functools import partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.export import fingerprint, state_digest
from metricopt.metrics.base import Metric
from metricopt.metrics.constrained import metrics_of
from metricopt.options import FinetuneOptions
from metricopt.reading.columns import columns_of
from metricopt.reading.expected import unwrapped
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss, loss_name

PACKAGES = (
    *("metricopt", "torch", "torchvision", "torchmetrics", "numpy", "scipy"),
    *("scikit-learn", "gpytorch", "cma"),
)
"""Packages whose versions can change any run, or that functions of a user may call."""
ELSEWHERE = {
    *("adapter", "callback", "checkpoint", "higher_is_better", "high", "low"),
    *("progress", "timeout"),
}
"""Options that other facts hold, or that decide nothing but where a search ends."""
ADDED: dict[str, object] = {"check_direction": True, "clusters": None}
"""Options that older checkpoints lack, as facts only where they are not these."""
READ = 256
"""Examples read at a time."""
FREE = ("range", "retries")
"""Names of the facts that do not change what the metric answers."""
SHOWN = 8
"""Digits of a digest that a message shows."""


def run_facts(
    adapter: NetworkAdapter,
    splits: Mapping[str, Examples],
    options: FinetuneOptions,
    *,
    loss: Loss,
    metric: Metric,
    given: object,
) -> dict[str, str]:
    """Return what decides a run, by name; all examples are read once.

    What a function computes is not known. Of a loss or metric of the user, `given`, the
    name and the settings are told apart, see `plain`; a message shows no setting of
    theirs.
    """
    metric, *_ = metrics_of(metric)  # what is bounded is among the options
    unit = "higher" if metric.higher_is_better else "lower"
    facts = {
        "network": f"{type(adapter.network).__name__} with weights "
        f"{fingerprint(adapter.network)[:SHOWN]}",
        "adapter": _shown(adapter.describe()),
        "loss": f"{loss_name(loss)} ({digest(loss)[:SHOWN]})",
        "metric": f"{metric.name}, {unit} is better ({digest(given)[:SHOWN]})",
        "range": f"{metric.low:g} to {metric.high:g}",
        "threads": str(torch.get_num_threads()),
        "device": _device(adapter),
    }
    for name, examples in splits.items():
        facts[f"{name} split"] = f"{len(examples)} examples ({_read(examples)[:SHOWN]})"
    for field in fields(options):
        value = getattr(options, field.name)
        known = field.name in ADDED and value == ADDED[field.name]
        if field.name not in ELSEWHERE and not known:
            facts[field.name] = _shown(value)
    for name in (*PACKAGES, *_packages_of(*adapter.network.modules(), loss, given)):
        facts[f"version of {name}"] = _version(name)
    return facts


def _packages_of(*used: object) -> list[str]:
    """Return the installed packages that objects or functions are from, but these."""
    bare = map(unwrapped, used)
    named = (each if hasattr(each, "__module__") else type(each) for each in bare)
    roots = {str(each.__module__).partition(".")[0] for each in named}
    known = packages_distributions()
    found = {name for root in roots for name in known.get(root, ())}
    return sorted(found - set(PACKAGES))


def _read(examples: Examples) -> str:
    """Return a digest of the inputs, targets and columns of a split."""
    found = hashlib.sha256(digest(examples.targets).encode())
    if columns := columns_of(examples):
        found.update(digest(columns).encode())
    for start in range(0, len(examples), READ):
        found.update(digest(examples.batch(slice(start, start + READ))).encode())
    return found.hexdigest()


def _device(adapter: NetworkAdapter) -> str:
    weight = next(adapter.network.parameters(), torch.empty(0))
    if weight.device.type == "cuda":
        return torch.cuda.get_device_name(weight.device)
    kind = torch.backends.cpu.get_cpu_capability()
    return f"{weight.device.type} {platform.machine()} {kind}"


def _shown(value: object) -> str:
    """Return a value as it is, if that is short, else a digest of it."""
    if value is None or isinstance(value, int | float | str):
        return str(value)
    return digest(value)[:SHOWN]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


LENGTH = 32
"""Hexadecimal digits of a digest."""
SETTING = bool | float | str
"""Types of attributes that are settings under any name."""
DEEPEST = 12
"""Levels of containers and objects that are looked into."""


def digest(value: object) -> str:
    """Return a digest, the same for equal values in every process; see `plain`."""
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def plain(value: object, depth: int = DEEPEST, above: tuple[int, ...] = ()) -> Any:
    """Return what JSON can hold of a value; large data become digests.

    Functions and classes become names. An object becomes its class and its settings:
    what its constructor takes and it holds under the same name, an underscore apart,
    and numbers with a point, texts and flags under any name. What else it holds is left
    out: counters and logs change from call to call. An object that holds nothing by
    name, such as a path or a date, becomes what `pickle` makes of it.

    Below `depth` levels only classes are told apart. A part that leads back to what
    holds it, whose identities are `above`, is named.
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
