"""Meta-trains an optimizer on a task, by each kind of supervision."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.problems.optimizers.learning import OptimizerLearning
from benchmarks.runs.codec import changed
from metricopt.algorithm_s1.metricopt_learned import MetricOptLearned
from metricopt.algorithm_s1.supervision import statistics_cost
from metricopt.algorithm_s1.task_runs import Cost, runs_of
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.meta_training import train_optimizer
from metricopt.learned_optimizers.metricopt_mlp import MetricOptMLP
from metricopt.methods.result import Budget
from metricopt.process.seeding import Seeds
from metricopt.tasks.descent import loss_optimizer, loss_rate, run, starts
from metricopt.tasks.task import Task

HELD_OUT, VALIDATED = 1_000_000, 8
"""Number of the first run to validate on, and how many there are."""
SHOWN_STEPS = 8
"""Points of a fine-tuning that the value function of statistics is fitted to."""


@dataclass(frozen=True)
class Place:
    """Where a meta-training happens.

    Attributes:
        task: gives losses, and counts queries.
        seeds: of everything random.
        checkpoint: file of the state of a training that is under way.
        shown: whether a terminal shows how far it is.
    """

    task: Task
    seeds: Seeds
    checkpoint: Path
    shown: bool = False


Trained = tuple[LearnedOptimizer, dict[str, float]]
"""An optimizer, and what happened by name.

`inner_steps` is among it, and `seconds` where earlier calls may have taken some.
"""


def meta_trained(learning: OptimizerLearning, place: Place) -> Trained:
    """Return the optimizer, meta-trained on runs of a task.

    Raises:
        ConfigError: if the task or the queries do not allow the supervision.
        DivergedError: if the meta-gradient is not finite over and over.
    """
    if learning.supervision == "value function":
        return _by_value_function(learning, place)
    return _on_runs(learning, place, *COSTS[learning.supervision](learning, place))


def _by_value_function(learning: OptimizerLearning, place: Place) -> Trained:
    """Algorithm S1, which queries its own runs."""
    form = learning.fresh(0)
    assert isinstance(form, MetricOptMLP)
    usual = MetricOptLearned(training=learning.settings, scale=form.scale)
    recipe = changed(usual.recipe, learning.recipe or {})
    method = replace(usual, recipe=recipe).from_starts(learning.start_deviation)
    budget = Budget(learning.queries, learning.steps)
    generator = place.seeds.generator("meta-training")
    with tqdm(unit=" run", disable=None if place.shown else True) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        made = method.prepare(place.task, budget, generator, progress=progress)
    facts = ("iterations", "skipped", "frozen", "inner_steps")
    known = method.learned(made, place.task, budget)
    return known.optimizer, {name: made.facts[name] for name in facts}


def _on_runs(
    learning: OptimizerLearning, place: Place, cost: Cost, steps_before: int
) -> Trained:
    """Train on runs whose metric, where it counts, is a given function of phi.

    Args:
        learning: how the optimizer is trained.
        place: where.
        cost: the metric of phi.
        steps_before: steps that were taken to know it.
    """
    optimizer = learning.fresh(place.seeds.seed("optimizer"))
    runs = runs_of(
        place.task,
        deviation=learning.start_deviation,
        seed=place.seeds.seed("runs"),
        cost=cost,
    )
    settings = replace(learning.settings, seed=place.seeds.seed("noise"))
    # Validation would query the metric, and a training that goes on would not know what
    # was queried before.
    queries = learning.supervision == "metric"
    numbers = range(HELD_OUT, HELD_OUT + VALIDATED)
    happened = train_optimizer(
        optimizer,
        runs,
        settings,
        held_out=None if queries else runs(numbers),
        checkpoint=None if queries else place.checkpoint,
        show=place.shown,
    )
    return optimizer.eval(), {
        "iterations": float(settings.iterations),
        "kept": float(happened.kept),
        "skipped": float(len(happened.skipped)),
        "frozen": float(happened.frozen),
        "inner_steps": float(happened.inner_steps + steps_before),
        "seconds": happened.seconds,
    }


def _unasked(learning: OptimizerLearning, place: Place) -> tuple[Cost, int]:
    def cost(phi: Tensor) -> Tensor:
        raise AssertionError("meta-training on the loss alone asked for the metric")

    return cost, 0


def _queried(learning: OptimizerLearning, place: Place) -> tuple[Cost, int]:
    return place.task.observe, 0


def _predicted(learning: OptimizerLearning, place: Place) -> tuple[Cost, int]:
    """Query points of fine-tunings on the loss, and predict the metric from them.

    As for rows with SGD, what chooses its rate is not among the steps.
    """
    task, steps = place.task, learning.steps
    generator = place.seeds.generator("queries")
    shown = min(SHOWN_STEPS, steps + 1)
    rows = math.ceil(learning.queries / shown)
    deviation = learning.start_deviation
    start = starts(task.size, rows, deviation, generator)
    rate = loss_rate(task, "sgd", steps, start_deviation=deviation)
    optimizer = loss_optimizer("sgd", rate, steps)
    path, _ = run(task, optimizer, start, steps, generator)
    places = torch.linspace(0, steps, shown).round().long()
    phi = path[:, places].flatten(0, 1)[: learning.queries]
    return statistics_cost(task, phi, task.observe(phi)), rows * steps


COSTS: dict[str, Callable[[OptimizerLearning, Place], tuple[Cost, int]]] = {
    "loss": _unasked,
    "metric": _queried,
    "statistics": _predicted,
}
