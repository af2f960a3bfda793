"""Trains the networks that runs start from, and learned optimizers, before any run.

One after the other each has the threads of the process, which convolutions use. Small
networks leave a GPU idle most of the time: there several are trained at once, by a
process each.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain

import torch
from tabulate import tabulate
from tqdm import tqdm

from baselines.training.team import team
from benchmarks.arms.contract import ARMS
from benchmarks.execution.processes import run_groups
from benchmarks.problems.contract import Pipeline, make_pipeline
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.spec import RunSpec, Unit
from metricopt.errors import DivergedError


def networks_of(specs: Sequence[RunSpec]) -> list[Prerequisite]:
    """Return the networks that specs need, each after the one it goes on from.

    Then what their arms need, such as optimizers that are meta-trained on a network.

    Raises:
        ConfigError: if the settings of a pipeline or an arm do not go together.
    """
    of_pipelines = (pipeline.prerequisites for pipeline in pipelines_of(specs))
    of_arms = (ARMS.get(spec.arm.kind).needs(spec) for spec in specs)
    found: dict[str, Prerequisite] = {}
    for needed in chain(
        chain.from_iterable(of_pipelines), chain.from_iterable(of_arms)
    ):
        found.setdefault(needed.digest, needed)
    return list(found.values())


def pipelines_of(specs: Sequence[RunSpec]) -> list[Pipeline]:
    """Return the pipelines of specs, and those they transfer from, each once."""
    found = {place: unit for spec in specs for place, unit in units_of(spec).items()}
    return [make_pipeline(unit, replicate) for (_, replicate), unit in found.items()]


Place = tuple[str, int]
"""A pipeline: its settings as JSON, and its replicate."""


def units_of(spec: RunSpec) -> dict[Place, Unit]:
    """Return the pipelines of a spec: its own, and the one it transfers from."""
    units = [unit for unit in (spec.pipeline, spec.arm.source) if unit is not None]
    return {(canonical(encode(unit)), spec.replicate): unit for unit in units}


def prepare(specs: Sequence[RunSpec]) -> None:
    """Train the networks of specs that are neither here nor released."""
    train_all([network for network in networks_of(specs) if not network.is_ready])


Ended = Callable[[Prerequisite], None]


def train_all(
    networks: Sequence[Prerequisite],
    *,
    released: bool = False,
    workers: int = 1,
    ended: Ended = lambda network: None,
) -> None:
    """Train networks that were not trained here yet.

    Args:
        networks: in the order of their trainings.
        released: whether each is written to the released weights once it is trained.
        workers: processes, each of which trains one network at a time; 1 trains in
            this one. They share its threads: OMP_NUM_THREADS, or all cores.
        ended: called here with each, as soon as its training is over, which may have
            been before this call; with one that diverged, too.

    Raises:
        MetricOptError: if a process is killed.
    """
    missing = []
    for network in networks:
        if network.is_made:
            ended(network)
        else:
            missing.append(network)
    if workers > 1:
        _train_at_once(missing, released, workers, ended)
        return
    own = team()
    for number, network in enumerate(missing, start=1):
        if own.leads:
            tqdm.write(f"network {number} of {len(missing)}: {network.name}")
        if _make(network) and released and own.leads:
            network.release()
        ended(network)


def _train_at_once(
    missing: Sequence[Prerequisite], released: bool, workers: int, ended: Ended
) -> None:
    """Train several networks at a time, and show how many are done."""
    by_digest = {network.digest: network for network in missing}
    with tqdm(total=len(missing), unit="network", smoothing=0.05) as bar:

        def report(digest: str) -> None:
            network = by_digest[digest]
            ended(network)
            bar.set_description(network.name)
            bar.update()

        groups: dict[str, list[Prerequisite]] = defaultdict(list)
        for network in missing:
            groups[_first(network).digest].append(network)
        place = released, max(1, torch.get_num_threads() // workers)
        run_groups(list(groups.values()), place, workers, _train_group, report)


def _first(network: Prerequisite) -> Prerequisite:
    """Return what has to be made before a network, or itself.

    One process trains all that wait for the same.
    """
    missing = [each for each in network.warm if not each.is_ready]
    return _first(missing[0]) if missing else network


def _train_group(
    group: Sequence[Prerequisite],
    place: tuple[bool, int],
    report: Callable[[str], None],
) -> None:
    """Train networks in a process of its own.

    Args:
        group: the networks.
        place: whether they are released, and the threads of the process.
        report: called with the digest of each that has ended.
    """
    released, threads = place
    torch.set_num_threads(threads)
    for network in group:
        if _make(network, quiet=True) and released:
            network.release()
        report(network.digest)


def _make(network: Prerequisite, *, quiet: bool = False) -> bool:
    """Make a network; return whether there is one."""
    try:
        network.make(quiet=quiet)
    except DivergedError as error:
        # Its runs are recorded as diverged; the others go on.
        tqdm.write(f"{network.name}: {error}")
        return False
    return True


def release_all(networks: Sequence[Prerequisite]) -> str:
    """Write networks trained here to the released weights, and list them.

    One that diverged has no weights, and is left out.
    """
    lines = []
    for network in networks:
        with suppress(DivergedError):
            lines.append(network.release())
    return tabulate(lines, headers="keys", tablefmt="plain", disable_numparse=True)
