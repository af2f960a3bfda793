"""What decides a call of `finetune`, in words and digests."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import (
    PackageNotFoundError,
    packages_distributions,
    version,
)

import torch

from metricopt.adapters.export import fingerprint
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.journal.digests import digest
from metricopt.metrics.base import Metric
from metricopt.options import FinetuneOptions
from metricopt.reading.expected import unwrapped
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss, loss_name

PACKAGES = (
    *("metricopt", "torch", "torchvision", "torchmetrics", "numpy", "scipy"),
    *("scikit-learn", "gpytorch", "cma"),
)
"""Packages whose versions can change any run, or that functions of a user may call."""
ELSEWHERE = {"adapter", "checkpoint", "progress", "higher_is_better", "low", "high"}
"""Options that decide nothing, or that other facts hold."""
READ = 256
"""Examples read at a time."""
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
    """Return what decides a run, by name.

    What a function computes is not known. Of a loss or metric of the user, the name and
    the settings are told apart, see `plain`; a message shows no setting of theirs.

    Args:
        adapter: adapter of the network theta.
        splits: examples by the name of their split; all are read once.
        options: everything that has a default.
        loss: the training loss.
        metric: the black box.
        given: what the user gave as the metric.
    """
    unit = "higher" if metric.higher_is_better else "lower"
    facts = {
        "network": f"{type(adapter.network).__name__} with weights "
        f"{fingerprint(adapter.network)[:SHOWN]}",
        "adapter": _shown(adapter.describe()),
        "loss": f"{loss_name(loss)} ({digest(loss)[:SHOWN]})",
        "metric": f"{metric.name} in [{metric.low:g}, {metric.high:g}], {unit} is "
        f"better ({digest(given)[:SHOWN]})",
        "threads": str(torch.get_num_threads()),
        "device": _device(adapter),
    }
    for name, examples in splits.items():
        facts[f"{name} split"] = f"{len(examples)} examples ({_read(examples)[:SHOWN]})"
    for field in fields(options):
        if field.name not in ELSEWHERE:
            facts[field.name] = _shown(getattr(options, field.name))
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
    """Return a digest of the inputs and targets of a split."""
    found = hashlib.sha256(digest(examples.targets).encode())
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
