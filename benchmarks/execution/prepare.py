"""What runs start from, made before them with progress: pre-trained networks.

Convolutions use all cores and runs do not, so training comes first.
"""

import os
from collections.abc import Sequence

import torch
from tabulate import tabulate
from tqdm import tqdm

from baselines.training.team import team
from benchmarks.problems.contract import Pipeline, make_pipeline
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.spec import RunSpec
from metricopt.errors import DivergedError


def networks_of(specs: Sequence[RunSpec]) -> list[Prerequisite]:
    """Return the networks that specs need, each after the one it goes on from.

    Raises:
        ConfigError: if the settings of a pipeline do not go together.
    """
    found: dict[str, Prerequisite] = {}
    for pipeline in pipelines_of(specs):
        for needed in pipeline.prerequisites:
            found.setdefault(needed.digest, needed)
    return list(found.values())


def pipelines_of(specs: Sequence[RunSpec]) -> list[Pipeline]:
    """Return the pipelines of specs, and those they transfer from, each once."""
    found = {
        (canonical(encode(unit)), spec.replicate): unit
        for spec in specs
        for unit in (spec.pipeline, spec.arm.source)
        if unit is not None
    }
    return [make_pipeline(unit, replicate) for (_, replicate), unit in found.items()]


def prepare(specs: Sequence[RunSpec]) -> None:
    """Train the networks of specs that are neither here nor released."""
    train_all([network for network in networks_of(specs) if not network.is_ready])


def train_all(networks: Sequence[Prerequisite]) -> None:
    """Train networks that were not trained here yet, one after the other."""
    missing = [network for network in networks if not network.is_made]
    threads, own = torch.get_num_threads(), team()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // own.size))
    try:
        for number, network in enumerate(missing, start=1):
            if own.leads:
                tqdm.write(f"network {number} of {len(missing)}: {network.name}")
            _make(network)
    finally:
        torch.set_num_threads(threads)


def _make(network: Prerequisite) -> None:
    try:
        network.make()
    except DivergedError as error:
        # Its runs are recorded as diverged; the others go on.
        tqdm.write(f"{network.name}: {error}")


def release_all(networks: Sequence[Prerequisite]) -> str:
    """Write networks trained here to the released weights, and list them."""
    lines = [network.release() for network in networks]
    return tabulate(lines, headers="keys", tablefmt="plain", disable_numparse=True)
