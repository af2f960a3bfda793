"""What the workers of a cluster do: train a network, encode a problem, make a run.

Each of these is one task. What a task makes that others need comes back as files of
artifacts, named by their digests. A worker takes over those that its cache lacks.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from benchmarks.execution.runner import measured
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.runs.artifacts import lacking, noted, packed, unpack
from benchmarks.runs.environment import device_name, environment
from benchmarks.runs.spec import RunSpec, Unit
from metricopt.errors import ConfigError, MetricOptError

Files = dict[str, bytes]
"""Files of artifacts by name."""


@dataclass(frozen=True)
class Order:
    """What a worker needs to know beside its task.

    Attributes:
        commit: code of the process that started everything.
        folders: its folders, by environment variable. A worker whose machine says
            other ones keeps them.
        fetch: returns the object that a reference of the cluster stands for.
        parts: references to the files of what has to be there before the task.
    """

    commit: str
    folders: Mapping[str, str]
    fetch: Callable[[Any], Files]
    parts: Sequence[Any] = ()


def train(
    order: Order, network: Prerequisite, cores: int, *needed: Sequence[str]
) -> tuple[list[str], Files]:
    """Train a network on some cores; return names and files of what was made."""
    _begin(order, needed, cores)
    with noted() as names, suppress(MetricOptError):
        # What diverged is an artifact, too, and its runs say so.
        network.make(quiet=True)
    return sorted(names), packed(names)


def encode(
    order: Order, unit: Unit, replicate: int, *needed: Sequence[str]
) -> tuple[list[str], Files]:
    """Make what the runs on a pipeline share; return names and files of it."""
    _begin(order, needed)
    with noted() as names, suppress(MetricOptError):
        # Whatever is wrong with it, its runs say so.
        make_pipeline(unit, replicate).make_shared()
    return sorted(names), packed(names)


def run(
    order: Order, spec: RunSpec, leads: bool, *needed: Sequence[str]
) -> tuple[str, list[str], Files]:
    """Make a run; return its record, and names and files of what it made for others.

    Args:
        order: what to know beside the run.
        spec: what is run.
        leads: whether others wait for what the run prepares.
        *needed: names of artifacts that have to be there.
    """
    _begin(order, needed)
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    machine = dict(_machine()) | {"device": device_name(pipeline.device)}
    with noted() as names:
        text = measured(spec, pipeline, machine).to_json()
    if not leads:
        return text, [], {}
    return text, sorted(names), packed(names)


def _begin(order: Order, needed: Sequence[Sequence[str]], threads: int = 1) -> None:
    """Prepare this process for a task, and its cache with what is needed.

    Raises:
        ConfigError: if the code of this machine is another one.
    """
    torch.set_num_threads(threads)
    for name, folder in order.folders.items():
        os.environ.setdefault(name, folder)
    own = _machine()["commit"]
    if own != order.commit:
        raise ConfigError(
            f"expected the commit {order.commit or 'of no checkout'} on every machine "
            f"of the cluster, got {own or 'none'} on {os.uname().nodename}"
        )
    for names, part in zip(needed, order.parts, strict=True):
        if lacking(names):
            unpack(order.fetch(part))


@cache
def _machine() -> Mapping[str, str]:
    return environment()
