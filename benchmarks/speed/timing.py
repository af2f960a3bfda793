"""Timings of meta-training and of the guided step, for `benchmarks.speed`."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import torch
from torch import Tensor, nn

from benchmarks.data.registry import find_source, resolve_variant
from benchmarks.networks.cifar_resnet import resnet32
from benchmarks.problems.tabular.pipeline import TabularPipeline
from benchmarks.problems.tabular.settings import (
    BinaryProblem,
    MLPBackbone,
    TabularSettings,
)
from benchmarks.runs.spec import Unit
from metricopt.adapters.film import FiLM
from metricopt.algorithm1.interpolation import Interpolator
from metricopt.algorithm1.meta_training import MetaTraining
from metricopt.algorithm1.optimizer import MetricOptimizer
from metricopt.algorithm1.recipe import RECIPE
from metricopt.algorithm1.trajectories import KINDS, Rollout, Trajectories, collect
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import MetricOptError
from metricopt.process.seeding import make_generator
from metricopt.tasks.descent import loss_optimizer
from metricopt.tasks.network_task import NetworkTask

LEARNING_RATE = 0.1
SECONDS = 4.0
"""After which one timing of meta-training ends, however few tasks are done."""
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Workload:
    """What is timed, and how often.

    Attributes:
        dataset: `a9a` or `digits`.
        tasks: of meta-training, after a first block that is not timed.
        steps: of the network, guided and not.
        rows: trajectories in lock-step.
        repeats: times everything is measured; the best counts.
    """

    dataset: str = "a9a"
    tasks: int = 320
    steps: int = 20
    rows: int = 32
    repeats: int = 3


class TimedInterpolator(Interpolator):
    """An interpolator that knows the seconds spent in it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def interpolate(self, trajectories: Trajectories) -> tuple[Tensor, Tensor]:
        """Return what `Interpolator` does, and add up the time."""
        started = time.perf_counter()
        found = super().interpolate(trajectories)
        self.seconds += time.perf_counter() - started
        return found


def make_task(dataset: str) -> NetworkTask:
    """Return the task of Table 3, class-balanced, metric F; theta is barely trained.

    Raises:
        DataError: if the data set is not there; nothing is downloaded.
    """
    name, positive = ("a9a", (1,)) if dataset == "a9a" else ("digits", (8,))
    variant = resolve_variant(name, offline=True)
    settings = TabularSettings(
        BinaryProblem(name, variant, positive),
        sampling="balanced",
        backbone=MLPBackbone(epochs=1, batch_size=256),
        revision=0,
    )
    pipeline = TabularPipeline(settings, 0)
    return pipeline.task(pipeline.metric(Unit("f1")))


def meta_training_rate(task: NetworkTask, tasks: int) -> tuple[float, float]:
    """Return tasks per second of meta-training, and the share of it in the GP.

    The kernel is refitted whenever the number of trajectories has doubled, so that
    the share is larger here than in a longer training.

    Args:
        task: what trajectories are made of.
        tasks: how many are timed at most, after one block that is not.
    """
    recipe = replace(RECIPE, tasks=tasks + RECIPE.block)
    factory = loss_optimizer("sgd", LEARNING_RATE)
    training = MetaTraining(task, recipe, factory, make_generator("speed"))
    timed = {kind: TimedInterpolator() for kind in KINDS}
    training.interpolators.update(timed)
    training.advance()
    for interpolator in timed.values():
        interpolator.seconds = 0.0
    seconds = _seconds(partial(_go_on, training))
    done = training.tasks_done - recipe.block
    in_gp = sum(interpolator.seconds for interpolator in timed.values())
    return done / seconds, in_gp / seconds


def process_rate(workload: Workload, processes: int) -> float:
    """Return tasks per second of some processes with one thread each, in all.

    Raises:
        MetricOptError: if a process ends early.
    """
    # A fresh interpreter, as in the runner.
    context = multiprocessing.get_context("spawn")
    barrier, rates = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_measure_here, args=(workload, barrier, rates))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    # Read before joining: a process does not end before its rates are taken.
    found = [rates.get(timeout=PATIENCE_SECONDS) for _ in workers]
    for worker in workers:
        worker.join()
    if not all(found):
        raise MetricOptError(f"a process of {processes} did not finish in time")
    return max(map(sum, zip(*found, strict=True)))


def lockstep_gain(
    task: NetworkTask, workload: Workload, *, observations: int = 3
) -> float:
    """Return how many times faster trajectories are in lock-step than one by one.

    Args:
        task: what trajectories are made of.
        workload: number of trajectories, and repeats.
        observations: metric queries of a trajectory. These pass the whole observe
            split through the network either way, so that most gain is in the steps.
    """
    rollout = Rollout(observations=observations)
    factory = loss_optimizer("sgd", LEARNING_RATE)

    def run(rows: int, times: int) -> None:
        generator = make_generator("speed")
        for _ in range(times):
            collect(task, factory, rollout, rows=rows, generator=generator)

    together, alone = interleaved(
        [partial(run, workload.rows, 1), partial(run, 1, workload.rows)],
        workload.repeats,
    )
    return alone / together


def guided_ratio(workload: Workload, *, cached: bool) -> tuple[float, float]:
    """Return the time of a guided step over that of a loss step, and its seconds.

    One phi of size 128 at the last FiLM site of a ResNet-32, batch 128 of digits as
    3x8x8; the guided step also takes the loss gradient.

    Args:
        workload: steps and repeats.
        cached: run only what comes after the site, or the whole network.
    """
    data = find_source("digits").load(offline=True)
    inputs, targets = data.inputs[:128].expand(-1, 3, -1, -1), data.targets[:128]
    adapter = FiLM(resnet32(lambda features: nn.Linear(features, 10)), inputs)
    phi = nn.Parameter(torch.zeros(adapter.size))
    features = adapter.encode(inputs)

    def outputs() -> Tensor:
        if cached:
            return adapter.predict(features, phi[None])[0]
        plain: Tensor = adapter.network(inputs)
        return plain

    def run(optimizer: torch.optim.Optimizer | MetricOptimizer) -> None:
        for _ in range(workload.steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(outputs(), targets).backward()
            optimizer.step()

    value_function = ValueFunction(adapter.size, make_generator("speed"))
    plain = torch.optim.SGD([phi], lr=1e-3)
    guided = MetricOptimizer(torch.optim.SGD([phi], lr=1e-3), value_function)
    runs = [partial(run, plain), partial(run, guided)]
    if cached:
        loss_only, with_metric = interleaved(runs, workload.repeats)
    else:
        with adapter.attach(phi):
            loss_only, with_metric = interleaved(runs, workload.repeats)
    return with_metric / loss_only, with_metric / workload.steps


def peak_megabytes() -> tuple[float, float]:
    """Return peak resident memory of this process, and of its largest child."""
    # Linux counts kibibytes, macOS bytes.
    unit = 1024**2 if sys.platform == "darwin" else 1024
    here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return here / unit, child / unit


def _go_on(training: MetaTraining) -> None:
    end = time.perf_counter() + SECONDS
    while not training.finished and time.perf_counter() < end:
        training.advance()


def _measure_here(
    workload: Workload, barrier: Barrier, rates: "Queue[list[float]]"
) -> None:
    """Measure in a process of its own, at the same time as the others do."""
    torch.set_num_threads(1)
    found: list[float] = []
    try:
        task = make_task(workload.dataset)
        for _ in range(workload.repeats):
            barrier.wait(PATIENCE_SECONDS)
            found.append(meta_training_rate(task, workload.tasks)[0])
    finally:
        rates.put(found if len(found) == workload.repeats else [])


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(works: Sequence[Callable[[], None]], repeats: int) -> list[float]:
    """Return the least seconds of each, all in turn, so that load hits them alike."""
    for work in works:
        work()
    rounds = [[_seconds(work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]
