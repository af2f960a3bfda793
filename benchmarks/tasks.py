"""From the settings of a spec to its bench and metric, and from names to data."""

import json
from functools import lru_cache
from typing import Any

from benchmarks.bench import Bench
from benchmarks.datasets import find_source
from benchmarks.image_bench import ImageBench
from benchmarks.records import canonical
from benchmarks.uci_bench import UCIBench
from benchmarks.vehicle_animal import VehicleAnimalCost
from metricopt.errors import ConfigError
from metricopt.metrics import make_metric
from metricopt.metrics.base import Metric

SHARED = ("problem", "sampling", "backbone", "adapter", "finetune", "revision")
"""Settings that all rows of a bench share."""

BENCHES: dict[str, type[Bench]] = {"dynamic-bias": UCIBench, "film": ImageBench}
"""Kinds of bench by the kind of adapter."""


def resolve_variant(name: str, *, offline: bool | None) -> str:
    """Return the variant of a data set that a run uses here, downloaded if need be.

    Args:
        name: of the data set.
        offline: whether downloads are forbidden; None for a plan, which needs no data
            and takes the official variant where there is none.

    Raises:
        DataError: if there is none, and downloads are forbidden or fail.
    """
    source = find_source(name)
    for status in source.status():
        if status.state != "missing":
            return status.variant.name
    if offline is None:
        return source.variants[0]
    return source.load(offline=offline).variant


def kind_of(settings: dict[str, Any]) -> type[Bench]:
    """Return the kind of bench of a spec's settings.

    Raises:
        ConfigError: if its kind of adapter is unknown.
    """
    kind = settings["adapter"]["kind"]
    if kind not in BENCHES:
        known = ", ".join(BENCHES)
        raise ConfigError(f"unknown kind of adapter {kind!r}; known: {known}")
    return BENCHES[kind]


@lru_cache(maxsize=1)
def _bench(text: str, replicate: int) -> Bench:
    settings = json.loads(text)
    return kind_of(settings)(settings, replicate)


def bench_of(settings: dict[str, Any], replicate: int) -> Bench:
    """Return the bench of a spec's settings; the last one stays in memory."""
    return _bench(bench_text(settings), replicate)


def bench_text(settings: dict[str, Any]) -> str:
    """Return the identity of a bench, its replicate excepted, as canonical JSON.

    Raises:
        ConfigError: if the settings lack a part.
    """
    missing = [name for name in SHARED if name not in settings]
    if missing:
        raise ConfigError(f"settings lack {', '.join(missing)}")
    return canonical({name: settings[name] for name in SHARED})


def metric_of(settings: dict[str, Any]) -> Metric:
    """Return the metric a spec names, one of the library or of the suite."""
    name = settings["metric"]
    return VehicleAnimalCost() if name == VehicleAnimalCost.name else make_metric(name)
