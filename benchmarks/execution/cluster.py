"""Runs on a cluster of Ray, which decides where and when each of them is made.

A run is a task. What runs share is a task before them: a network, the features of a
problem that several need, what the first run of several prepares. Ray starts a task
when what it needs is there, and starts it again elsewhere if its worker is lost. This
process alone writes records.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from types import ModuleType
from typing import Any

from benchmarks.arms.contract import ARMS
from benchmarks.execution import remote
from benchmarks.execution.connection import connected
from benchmarks.execution.networks import Place, networks_of, units_of
from benchmarks.execution.planned import longest_first, preparation
from benchmarks.execution.runner import missing_runs, progress
from benchmarks.problems.contract import Pipeline, make_pipeline
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.runs.artifacts import noted, packed
from benchmarks.runs.environment import commit
from benchmarks.runs.paths import VARIABLES
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec, Unit
from benchmarks.runs.store import RunStore
from metricopt.errors import ConfigError, MetricOptError

RETRIES = 10
"""Times that a task is started again after its worker was lost."""
WORKER_BYTES = 2 * 10**9
"""Memory of a worker beside the features of its problem."""
GPU_BYTES = 16 * 10**9
"""Memory of the smallest GPU that runs are made on."""
SECONDS = 1.0
"""How often an interrupt is noticed while nothing ends."""


@dataclass(frozen=True)
class Shared:
    """What a task makes for others.

    Attributes:
        names: reference to the names of artifacts; there when the task has ended.
        files: reference to their files, which stay on the machine that made them until
            another one needs them.
    """

    names: Any
    files: Any


def run_on_cluster(
    specs: Sequence[RunSpec],
    store: RunStore,
    *,
    address: str,
    redo: Collection[str] = (),
    seconds: Mapping[str, float] | None = None,
) -> list[RunSpec]:
    """Run every spec that has no record yet, and train its network, on a cluster.

    Args:
        specs: what to run.
        store: where records go, each as soon as its run ends.
        address: of the cluster, or `auto`.
        redo: digests of specs that are run although they have a record.
        seconds: how long runs are likely to take, by digest: the longest come first.

    Returns:
        The specs that were run.

    Raises:
        ConfigError: if two specs fill the same place, the store is not writable, or the
            cluster cannot be used; see `connected`.
        MetricOptError: if a worker is lost again and again.
    """
    missing = missing_runs(specs, store, redo)
    if not missing:
        return []
    with connected(address) as ray, progress(len(missing)) as report, _causes(ray):
        waiting = set(_Tasks(ray).runs(missing, seconds or {}))
        while waiting:
            ended, _ = ray.wait(list(waiting), timeout=SECONDS)
            for reference in ended:
                record = RunRecord.from_json(ray.get(reference))
                store.put(record)
                waiting.remove(reference)
                report(f"{record.spec.column} {record.spec.row}")
    return missing


class _Tasks:
    """Hands tasks to Ray, each with what has to be there before it starts.

    Args:
        ray: the module, connected.
    """

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._folders = {n: os.environ[n] for n in VARIABLES if n in os.environ}
        self._commit = commit()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self._cores = max(int(node.get("CPU", 0)) for node in nodes)
        self._memory = int(max(node.get("memory", 0) for node in nodes))
        self._has_gpus = any(node.get("GPU") for node in nodes)
        if not self._cores:
            raise ConfigError(
                "expected a cluster with at least one core; start Ray with --num-cpus"
            )
        self._networks: dict[str, Shared] = {}
        self._pipelines: dict[Place, Shared] = {}
        self._uses: Counter[Place] = Counter()
        self._prepared: dict[str, Shared] = {}

    def runs(self, specs: Sequence[RunSpec], seconds: Mapping[str, float]) -> list[Any]:
        """Hand over runs with all they need; return references to their records."""
        for network in networks_of(specs):
            self._train(network)
        # Ray starts what could start at once in the order it comes.
        line = longest_first(specs, seconds)
        count = Counter(map(preparation, line))
        self._uses.update(place for spec in line for place in units_of(spec))
        return [self._run(spec, count[preparation(spec)] > 1) for spec in line]

    def _train(self, network: Prerequisite) -> None:
        """Let a network be trained, unless it is there."""
        with noted() as names:
            made, ready = network.is_made, network.is_ready
        if made:
            put = self._ray.put
            shared = Shared(put(sorted(names)), put(packed(names)))
        elif ready:
            return  # released, so every machine has it
        else:
            cores = 1 if self._has_gpus else self._cores
            options = {"num_cpus": cores, "num_gpus": int(self._has_gpus)}
            before = self._made(network.warm)
            names, files = self._submit(
                remote.train, (network, cores), before, num_returns=2, **options
            )
            shared = Shared(names, files)
        self._networks[network.digest] = shared

    def _made(self, networks: Sequence[Prerequisite]) -> list[Shared]:
        found = (self._networks.get(network.digest) for network in networks)
        return [shared for shared in found if shared is not None]

    def _encode(self, place: Place, unit: Unit) -> list[Shared]:
        """Let the features of a pipeline be made, once.

        A single run makes its own: they can be gigabytes, which it alone reads.

        Returns:
            What has to be there before a run on the pipeline.
        """
        if place not in self._pipelines:
            _, replicate = place
            pipeline = make_pipeline(unit, replicate)
            before = self._made(pipeline.prerequisites)
            if self._uses[place] == 1:
                return before
            names, files = self._submit(
                remote.encode,
                (unit, replicate),
                before,
                num_returns=2,
                **self._needs(pipeline),
            )
            self._pipelines[place] = Shared(names, files)
        return [self._pipelines[place]]

    def _run(self, spec: RunSpec, shares: bool) -> Any:
        """Let a run be made; return the reference to its record.

        Args:
            spec: the run.
            shares: whether others need what it prepares; the first makes it.
        """
        parts = (self._encode(place, unit) for place, unit in units_of(spec).items())
        before = list(chain.from_iterable(parts))
        before += self._made(ARMS.get(spec.arm.kind).needs(spec))
        key = preparation(spec)
        leads = shares and bool(key) and key not in self._prepared
        if shares and key in self._prepared:
            before.append(self._prepared[key])
        needs = self._needs(make_pipeline(spec.pipeline, spec.replicate))
        record, names, files = self._submit(
            remote.run, (spec, leads), before, num_returns=3, **needs
        )
        if leads:
            self._prepared[key] = Shared(names, files)
        return record

    def _submit(
        self,
        work: Any,
        arguments: tuple[Any, ...],
        before: Sequence[Shared],
        **options: Any,
    ) -> Any:
        parts = [shared.files for shared in before]
        order = remote.Order(self._commit, self._folders, self._ray.get, parts)
        task = self._ray.remote(work).options(max_retries=RETRIES, **options)
        return task.remote(order, *arguments, *(shared.names for shared in before))

    def _needs(self, pipeline: Pipeline) -> dict[str, float]:
        """Return what a task on a pipeline takes of a machine.

        No more than the largest machine has: otherwise the task would never start.
        """
        forecast = pipeline.forecast()
        features = forecast.feature_bytes if forecast else 0
        memory = min(WORKER_BYTES + features, self._memory)
        share = min(1.0, (WORKER_BYTES + features) / GPU_BYTES)
        return {
            "num_cpus": 1,
            "memory": memory,
            "num_gpus": share if self._has_gpus else 0,
        }


@contextmanager
def _causes(ray: ModuleType) -> Iterator[None]:
    """Let errors of tasks be what they are where they were raised.

    Raises:
        MetricOptError: if a task was lost with its worker too often.
    """
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, MetricOptError):
            raise error.cause from error
        raise
    except ray.exceptions.RayError as error:
        raise MetricOptError(
            f"a run was lost with its worker {RETRIES + 1} times, maybe for want of "
            f"memory ({str(error).splitlines()[0]}); finished runs are kept, and the "
            "same command goes on"
        ) from error
