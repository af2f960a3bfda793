"""What learned optimizers cost: `python -m benchmarks.speed.learned_optimizers`.

Meta-training with all runs in lock-step against one run after the other, and a learned
step against one of Adam, on the fine-tuning of a table's column with cached features.
Side by side in this one run, best of three.
"""

import argparse
import os
import platform
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from baselines.optimizers.lstm import LSTMOptimizer
from baselines.optimizers.mlp import MLPOptimizer
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.speed.measurement import Line, as_table, interleaved
from benchmarks.tables.registry import find_experiment
from metricopt.algorithm_s1.task_runs import runs_of
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS, MetricOptMLP
from metricopt.learned_optimizers.stepper import LearnedStepper
from metricopt.learned_optimizers.unroll import Unroll
from metricopt.process.seeding import make_generator
from metricopt.tasks.descent import START_DEVIATION, loss_optimizer, run, starts
from metricopt.tasks.task import Task

REPEATS, STEPS = 3, 20
TASKS, COPIES = 4, 4
"""Runs of one meta-iteration: tasks, and copies of the optimizer on each."""
ROWS = 10
"""Fine-tunings of a run in the tables."""
INPUTS = tuple(name for name in ALL_INPUTS if "metric" not in name)


def task_of(experiment: str, tier: str, column: str) -> Task:
    """Return the task of a column of a table, at its first replicate."""
    found = find_experiment(experiment).specs(tier, 1, True)
    spec = next(each for each in found if each.column == column)
    pipeline = make_pipeline(spec.pipeline, 0)
    assert isinstance(pipeline, NetworkPipeline)
    return pipeline.task(pipeline.metric(spec.metric))


def learned() -> dict[str, LearnedOptimizer]:
    """Return optimizers as before their training, which cost what trained ones do."""
    return {
        "MetricOpt's MLP": MetricOptMLP(STEPS, INPUTS),
        "MLP (2019)": MLPOptimizer(STEPS),
        "LSTM (2016)": LSTMOptimizer(STEPS),
    }


def meta_training(task: Task) -> list[Line]:
    """Return runs a second in lock-step, and one by one."""
    optimizer = learned()["MetricOpt's MLP"]
    runs = runs_of(task, deviation=START_DEVIATION, seed=0, cost=_unasked)
    centre = parameters_to_vector(optimizer.parameters()).detach()
    weights = centre.expand(COPIES, TASKS, -1)

    def at_once() -> None:
        Unroll(optimizer, runs(range(TASKS)), copies=COPIES).advance(STEPS, weights)

    def one_by_one() -> None:
        for number in range(TASKS):
            for copy in range(COPIES):
                own = weights[copy : copy + 1, number : number + 1]
                Unroll(optimizer, runs([number])).advance(STEPS, own)

    seconds = interleaved([at_once, one_by_one], REPEATS)
    count = TASKS * COPIES
    return [
        ("runs in lock-step", f"{count / seconds[0]:.1f} runs/s"),
        ("runs one by one", f"{count / seconds[1]:.1f} runs/s"),
        ("lock-step over one by one", f"{seconds[1] / seconds[0]:.2f} x"),
    ]


def _unasked(phi: Tensor) -> Tensor:
    raise AssertionError("no run here asks for the metric")


def steps(task: Task) -> list[Line]:
    """Return what a step of each optimizer costs over one of Adam."""
    start = starts(task.size, ROWS, START_DEVIATION, make_generator("speed"))
    makers = {"Adam": loss_optimizer("adam", 1e-3)}
    for name, optimizer in learned().items():
        makers[name] = partial(_stepper, optimizer)
    works = [
        partial(run, task, maker, start, STEPS, make_generator("speed"))
        for maker in makers.values()
    ]
    seconds = dict(zip(makers, interleaved(works, REPEATS), strict=True))
    adam = seconds["Adam"]
    return [
        (f"a step of Adam, {ROWS} rows", f"{1e3 * adam / STEPS:.2f} ms"),
        *(
            (f"a step of {name} over Adam's", f"{spent / adam:.2f} x")
            for name, spent in seconds.items()
            if name != "Adam"
        ),
    ]


def _stepper(optimizer: LearnedOptimizer, phi: torch.nn.Parameter) -> LearnedStepper:
    return LearnedStepper([phi], optimizer)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="table1", metavar="NAME")
    parser.add_argument("--tier", default="local")
    parser.add_argument("--column", default="cifar10/mcr", metavar="NAME")
    asked = parser.parse_args(arguments)
    task = task_of(asked.table, asked.tier, asked.column)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} of {os.cpu_count()} "
        f"cores {platform.machine()}, {asked.table} {asked.column}, d = {task.size}, "
        f"{STEPS} steps, best of {REPEATS}",
        flush=True,
    )
    print(as_table([*meta_training(task), *steps(task)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
