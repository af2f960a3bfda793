"""How fast meta-training and the guided step are: `python -m benchmarks.speed`.

Every claim is a ratio or a rate measured side by side in this one run, best of three;
what else runs on the machine lowers it.
"""

import multiprocessing
import os
import platform
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

from benchmarks.datasets import find_source
from benchmarks.problems import A9A, DIGIT
from benchmarks.render import align
from benchmarks.speed_networks import resnet32
from benchmarks.tasks import Bench, metric_of, resolve_variant
from benchmarks.uci import Arm, Place, method, spec
from metricopt.adapters import FiLM
from metricopt.errors import DataError, MetricOptError
from metricopt.interpolation import Interpolator
from metricopt.meta_training import RECIPE, MetaTraining
from metricopt.network_task import NetworkTask
from metricopt.observations import Trajectories
from metricopt.optimizer import MetricOptimizer
from metricopt.seeding import make_generator
from metricopt.trajectories import Rollout, collect, loss_optimizer
from metricopt.value_function import ValueFunction

TASKS_PER_SECOND, PROTOTYPE = 200, 70
LOCKSTEP_GAIN = 10
GUIDED_STEP = 1.1
GP_SHARE = 0.10
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


@dataclass(frozen=True)
class Measurement:
    """One line of the table.

    Attributes:
        what: what was measured.
        found: the value, with its unit.
        target: what it should be; empty if nothing was promised.
        met: whether it is; None without a target.
    """

    what: str
    found: str
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """Return the texts of the table's line."""
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        return self.what, self.found, self.target, verdict


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
    problem = replace(A9A if dataset == "a9a" else DIGIT, epochs=1)
    variant = resolve_variant(problem.dataset, offline=True)
    place = Place("speed", "local", "balanced", "metricopt", "f1", 0)
    settings = dict(spec(place, problem, variant, Arm(*method("metricopt"))).settings)
    return Bench(settings, 0).task(metric_of(settings))


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
    timed = TimedInterpolator()
    training.interpolator = timed
    training.advance()
    timed.seconds = 0.0
    seconds = _seconds(partial(_go_on, training))
    done = training.tasks_done - recipe.block
    return done / seconds, timed.seconds / seconds


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


def lockstep_gain(task: NetworkTask, workload: Workload) -> float:
    """Return how many times faster trajectories are in lock-step than one by one."""
    factory = loss_optimizer("sgd", LEARNING_RATE)

    def run(rows: int, times: int) -> None:
        generator = make_generator("speed")
        for _ in range(times):
            collect(task, factory, Rollout(), rows=rows, generator=generator)

    together, alone = _interleaved(
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
    adapter = FiLM(resnet32(), inputs)
    phi = nn.Parameter(torch.zeros(adapter.size))
    features = adapter.encode(inputs)

    def outputs() -> Tensor:
        if cached:
            return adapter.predict(features, phi[None])[0]
        return Tensor(adapter.network(inputs))

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
        loss_only, with_metric = _interleaved(runs, workload.repeats)
    else:
        with adapter.attach(phi):
            loss_only, with_metric = _interleaved(runs, workload.repeats)
    return with_metric / loss_only, with_metric / workload.steps


def peak_megabytes() -> tuple[float, float]:
    """Return peak resident memory of this process, and of its largest child."""
    # Linux counts kibibytes, macOS bytes.
    unit = 1024**2 if sys.platform == "darwin" else 1024
    here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return here / unit, child / unit


def measure(workload: Workload) -> list[Measurement]:
    """Return every line of the table; the threads of torch are left at one."""
    task = make_task(workload.dataset)
    return [
        *_meta_training(task, workload),
        *_steps(task, workload),
        _memory(),
    ]


def available_dataset() -> str:
    """Return `a9a`, or `digits` where that is not there."""
    try:
        resolve_variant("a9a", offline=True)
    except DataError:
        return "digits"
    return "a9a"


def main() -> int:
    """Measure and print the table; return 0, also where a target is missed."""
    dataset = available_dataset()
    started = time.perf_counter()
    if dataset != "a9a":
        print("a9a is not there (./reproduce.sh data fetch a9a): digits instead")
    print(
        f"torch {torch.__version__}, {os.cpu_count()} cores {platform.machine()}, "
        f"meta-training on {dataset}, best of {Workload.repeats}",
        flush=True,
    )
    lines = measure(Workload(dataset))
    header = ("what", "measured", "target", "")
    print(align([header, *(line.cells() for line in lines)]))
    print(f"{time.perf_counter() - started:.0f} seconds in all")
    return 0


def _meta_training(task: NetworkTask, workload: Workload) -> list[Measurement]:
    target, lines, shares = f">= {TASKS_PER_SECOND}", [], []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        found = [
            meta_training_rate(task, workload.tasks) for _ in range(workload.repeats)
        ]
        rate = max(rate for rate, _ in found)
        shares = [share for _, share in found]
        name = f"meta-training, 1 process of {threads} thread{'s'[: threads - 1]}"
        met = rate >= TASKS_PER_SECOND
        lines.append(Measurement(name, f"{rate:.0f} tasks/s", target, met))
    rate = process_rate(workload, 2)
    name = "meta-training, 2 processes of 1 thread"
    met = rate >= TASKS_PER_SECOND
    lines.append(Measurement(name, f"{rate:.0f} tasks/s", target, met))
    lines.append(Measurement("  the prototype, for comparison", f"{PROTOTYPE} tasks/s"))
    share, name = min(shares), "share of meta-training in the GP, 1 thread"
    limit = f"< {GP_SHARE:.0%}"
    return [*lines, Measurement(name, f"{share:.1%}", limit, share < GP_SHARE)]


def _steps(task: NetworkTask, workload: Workload) -> list[Measurement]:
    gain = lockstep_gain(task, workload)
    name = f"{workload.rows} trajectories in lock-step against one by one"
    lines = [
        Measurement(
            name, f"{gain:.1f} x", f">= {LOCKSTEP_GAIN} x", gain >= LOCKSTEP_GAIN
        ),
    ]
    for cached in (False, True):
        ratio, seconds = guided_ratio(workload, cached=cached)
        form = "cached features" if cached else "whole network"
        name = f"guided step over loss step, ResNet-32, {form}"
        found = f"{ratio:.2f} x ({seconds * 1000:.1f} ms)"
        promised = (
            ("", None) if cached else (f"<= {GUIDED_STEP} x", ratio <= GUIDED_STEP)
        )
        lines.append(Measurement(name, found, *promised))
    return lines


def _memory() -> Measurement:
    here, child = peak_megabytes()
    return Measurement(
        "peak memory, this process and the largest worker",
        f"{here:.0f} MB, {child:.0f} MB",
    )


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


def _interleaved(works: Sequence[Callable[[], None]], repeats: int) -> list[float]:
    """Return the least seconds of each, all in turn, so that load hits them alike."""
    for work in works:
        work()
    rounds = [[_seconds(work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
