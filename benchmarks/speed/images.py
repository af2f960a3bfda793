"""How fast fine-tuning on images is: `python -m benchmarks.speed.images`.

ResNet-32 on CIFAR-10 with FiLM on its last feature map. Every claim is a ratio or a
rate measured side by side in this one run; what else runs on the machine lowers it.
"""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.experiments import table2
from benchmarks.problems.images.pipeline import ImagePipeline
from benchmarks.problems.images.theta import Theta, fresh
from benchmarks.problems.pretrained.theta import is_ready
from benchmarks.speed.measurement import Measurement, as_table
from benchmarks.speed.timing import interleaved
from metricopt.algorithm1.meta_training import MetaTraining
from metricopt.algorithm1.optimizer import MetricOptimizer
from metricopt.algorithm1.recipe import RECIPE
from metricopt.algorithm1.trajectories import Rollout
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.descent import loss_optimizer
from metricopt.tasks.judge import Judge
from metricopt.tasks.network_task import NetworkTask

BATCH, STEPS, REPEATS = 128, 10, 3
TASKS = 480
GUIDED_STEP = 1.05
META_TRAINING_MINUTES = 30


def make_pipeline() -> ImagePipeline:
    """Return the pipeline of Table 2 with ResNet-32; untrained if no theta is there."""
    specs = table2.specs("local", 1, True)
    chosen = next(s for s in specs if s.column.startswith("resnet32"))
    pipeline = ImagePipeline.make(chosen.pipeline, 0)
    if not is_ready(pipeline.theta_spec):
        # Times do not depend on the weights.
        network, loss = fresh(pipeline.theta_spec)
        pipeline.pretrained = Theta(network.eval(), loss, "untrained")
    return pipeline


def step_times(pipeline: ImagePipeline) -> dict[str, float]:
    """Return seconds of a step on one phi: loss or guided, whole network or cached."""
    adapter, split = pipeline.adapter, pipeline.splits.train
    inputs, targets = split.batch(slice(BATCH)), split.targets[:BATCH]
    phi = nn.Parameter(torch.zeros(adapter.size))
    features = adapter.encode(inputs)
    value_function = ValueFunction(adapter.size, make_generator("speed"))

    def whole() -> Tensor:
        with adapter.attach(phi):
            return adapter.network(inputs)

    def cached() -> Tensor:
        return adapter.predict(features, phi[None])[0]

    def steps(outputs: Callable[[], Tensor], guided: bool) -> None:
        sgd = torch.optim.SGD([phi], lr=1e-3)
        optimizer = MetricOptimizer(sgd, value_function) if guided else sgd
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(outputs(), targets).backward()
            optimizer.step()

    works = {
        f"{kind} {place}": partial(steps, outputs, kind == "guided")
        for place, outputs in (("whole", whole), ("cached", cached))
        for kind in ("loss", "guided")
    }
    seconds = interleaved(list(works.values()), REPEATS)
    return {name: found / STEPS for name, found in zip(works, seconds, strict=True)}


def query_times(pipeline: ImagePipeline) -> tuple[float, float]:
    """Return seconds of one query's forward pass, and of its metric alone."""
    split, phi = pipeline.encoded("observe"), torch.zeros(1, pipeline.adapter.size)
    judge, metric = Judge(pipeline.adapter, split), make_metric("aucpr")
    outputs = judge.outputs(phi)
    works = (
        lambda: judge.outputs(phi),
        lambda: metric.values(outputs, split.targets),
    )
    forward, judged = interleaved(list(works), REPEATS)
    return forward, judged


def meta_training_seconds(task: NetworkTask) -> float:
    """Return seconds of one block of meta-training, by its number of tasks."""
    rollout = Rollout(steps=100, observations=5)
    recipe = replace(RECIPE, tasks=3 * RECIPE.block, rollout=rollout)
    factory = loss_optimizer("sgd", 0.1)
    training = MetaTraining(task, recipe, factory, make_generator("speed"))
    training.advance()
    started = time.perf_counter()
    while not training.finished:
        training.advance()
    return (time.perf_counter() - started) / (recipe.tasks - recipe.block)


def measure() -> list[Measurement]:
    """Return every line of the table."""
    pipeline = make_pipeline()
    task = pipeline.task(make_metric("aucpr"))
    steps = step_times(pipeline)
    lines = []
    for place in ("whole", "cached"):
        ratio = steps[f"guided {place}"] / steps[f"loss {place}"]
        name = f"guided step over loss step, {place}"
        found = f"{ratio:.2f} x ({1000 * steps[f'guided {place}']:.1f} ms)"
        whole = place == "whole"
        target = f"<= {GUIDED_STEP} x" if whole else ""
        lines.append(
            Measurement(name, found, target, ratio <= GUIDED_STEP if whole else None)
        )
    gain = steps["guided whole"] / steps["guided cached"]
    lines.append(Measurement("guided step, cached against whole", f"{gain:.1f} x"))
    forward, metric = query_times(pipeline)
    found = f"{1000 * metric:.1f} ms, forward {1000 * forward:.1f} ms"
    name = "AUCPR of 10 classes on 5,000 images"
    lines.append(Measurement(name, found, "<= forward", metric <= forward))
    minutes = meta_training_seconds(task) * TASKS / 60
    name = f"meta-training of {TASKS} tasks, T = 100, K = 5"
    target, met = f"<= {META_TRAINING_MINUTES} min", minutes <= META_TRAINING_MINUTES
    return [*lines, Measurement(name, f"{minutes:.1f} min", target, met)]


def main() -> int:
    """Measure with one thread and with all, print a table each, and return 0."""
    for threads in (1, os.cpu_count() or 1):
        torch.set_num_threads(threads)
        started = time.perf_counter()
        print(
            f"torch {torch.__version__}, {threads} of {os.cpu_count()} cores "
            f"{platform.machine()}, batch {BATCH}",
            flush=True,
        )
        print(as_table(measure()))
        print(f"{time.perf_counter() - started:.0f} seconds in all\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
