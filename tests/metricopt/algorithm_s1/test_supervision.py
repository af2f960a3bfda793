"""Supervision by statistics: as good as the metric, and free of queries."""

import pytest
import torch

from metricopt.algorithm_s1.supervision import statistics_cost
from metricopt.algorithm_s1.task_runs import runs_of
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import (
    MetricOptMLP,
    Objective,
    OptimizerTraining,
    mean_objective,
    train_optimizer,
)
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from tests.metricopt.drawn import draw
from tests.metricopt.on_outputs.outputs_task import digits_task
from tests.metricopt.quadratic_task import SIZE, QuadraticTask

QUERIES = 30


@pytest.fixture(scope="module")
def task():
    return digits_task("f-macro")


@pytest.fixture(scope="module")
def cost(task):
    phi = 0.2 * draw(QUERIES, task.size)
    return statistics_cost(task, phi, task.observe(phi))


def test_predictions_are_the_metric_and_no_queries(task, cost):
    phi = 0.2 * draw(20, task.size, seed=1)
    queries = task.queries
    predicted = cost(phi)
    assert task.queries == queries
    expected = task.observe(phi)
    assert predicted.shape == (20,)
    error = (predicted.double() - expected).abs().mean()
    assert error < 0.1 * expected.std()
    assert predicted.dtype == torch.float32
    assert not predicted.requires_grad


def test_an_optimizer_is_trained_by_them_without_a_query(task, cost):
    runs = runs_of(task, deviation=0.1, seed=0, cost=cost)
    learned = MetricOptMLP(6, ALL_INPUTS)
    settings = OptimizerTraining(iterations=12, rate=1e-2, objective=Objective())
    held_out, queries = runs(range(900, 908)), task.queries
    before = mean_objective(learned, held_out, settings.objective)
    train_optimizer(learned, runs, settings)
    assert task.queries == queries
    assert mean_objective(learned, held_out, settings.objective) < before


def test_the_metric_itself_is_charged_at_every_look():
    task = QuadraticTask()
    runs = runs_of(task, deviation=0.1, seed=0, cost=task.observe)
    settings = OptimizerTraining(iterations=1, tasks=2, pairs=1)
    train_optimizer(MetricOptMLP(4), runs, settings)
    # Two copies of two tasks, at phi_0 to phi_4.
    assert task.queries == 2 * 2 * 5


def test_a_task_without_statistics_is_refused():
    with pytest.raises(ConfigError, match="QuadraticTask must have statistics of out"):
        statistics_cost(QuadraticTask(), torch.zeros(2, SIZE), torch.zeros(2))
