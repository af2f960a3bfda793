"""Runs on a task: the same batches for all copies, counted queries, rows that stop."""

import pytest
import torch

from metricopt.algorithm_s1.task_runs import (
    TaskRuns,
    observed_run,
    observed_steps,
    runs_of,
    seeded_batches,
)
from metricopt.learned_optimizers import (
    MetricOptMLP,
    Objective,
    OptimizerTraining,
    mean_objective,
    train_optimizer,
)
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from metricopt.tasks.descent import run
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.learned_optimizers.quadratics import Descent
from tests.metricopt.quadratic_task import SIZE, QuadraticTask, SteepTask


def family(task, rows=2):
    return TaskRuns(
        task,
        torch.zeros(rows, SIZE),
        batches=seeded_batches("test"),
        cost=task.cost,
    )


def test_copies_get_the_same_batch_and_steps_get_others():
    runs, phi = family(QuadraticTask()), draw(2, SIZE)
    losses = runs.losses(phi.expand(3, 2, SIZE), 4)
    assert (losses == losses[0]).all()
    assert torch.equal(runs.losses(phi[None], 4)[0], losses[0])
    assert not torch.equal(runs.losses(phi[None], 5)[0], losses[0])
    assert losses[0, 0] != losses[0, 1]


def test_a_row_that_diverges_is_no_number_and_the_others_are():
    phi = torch.zeros(2, 2, SIZE)
    phi[1, 0] = 100.0
    phi.requires_grad_()
    losses = family(SteepTask()).losses(phi, 0)
    assert losses.isnan().tolist() == [[False, False], [True, False]]
    slopes = torch.autograd.grad(losses.sum(), phi)[0]
    assert slopes.isfinite().all(-1).tolist() == losses.isfinite().tolist()


def optimizer(horizon=50):
    made = MetricOptMLP(horizon, ALL_INPUTS)
    with torch.no_grad():
        made.network[-1].weight.mul_(10)
    return made


@pytest.mark.parametrize(
    ("steps", "expected"), [(50, [0, 24, 49]), (30, [0, 24]), (0, [])]
)
def test_the_metric_is_queried_where_it_is_shown_and_counted(steps, expected):
    task, start = QuadraticTask(), draw(4, SIZE)
    found = observed_run(
        optimizer(), task, start, steps=steps, batches=seeded_batches("test")
    )
    assert found.path.shape == (4, steps + 1, SIZE)
    assert found.losses.shape == (4, steps)
    assert found.steps.tolist() == expected
    assert observed_steps(optimizer(), steps) == expected
    assert task.queries == 4 * len(expected)
    visited = found.path[:, found.steps]
    expected = task.cost(visited.flatten(0, 1)).view(4, -1)
    assert torch.equal(found.costs, expected)
    assert torch.equal(found.path[:, 0], start)


def test_steps_of_descent_are_those_of_sgd_on_the_same_batches():
    start, generators = draw(3, SIZE), [seeded(1), seeded(1)]
    learned = Descent(0.1, dtype=torch.float32)
    found = observed_run(
        learned, QuadraticTask(), start, steps=5, batches=lambda step: generators[0]
    )
    path, losses = run(
        QuadraticTask(),
        lambda phi: torch.optim.SGD([phi], 0.1),
        start,
        5,
        generators[1],
    )
    torch.testing.assert_close(found.path, path)
    torch.testing.assert_close(found.losses, losses)
    # It does not see the metric.
    assert found.costs.shape == (3, 0)
    assert found.steps.numel() == 0


def test_a_number_is_always_the_same_run_of_a_task():
    task = QuadraticTask()
    runs = runs_of(task, deviation=0.5, seed=1, cost=task.cost)
    one, again, other = runs([4, 5]), runs([4, 5]), runs([6, 7])
    phi = draw(1, 2, SIZE)
    assert torch.equal(one.starts(), again.starts())
    assert torch.equal(one.losses(phi, 3), again.losses(phi, 3))
    assert not torch.equal(one.starts(), other.starts())
    assert not torch.equal(one.losses(phi, 3), other.losses(phi, 3))
    assert torch.equal(runs([5]).starts(), one.starts()[1:])
    seeded_otherwise = runs_of(task, deviation=0.5, seed=2, cost=task.cost)
    assert not torch.equal(seeded_otherwise([4, 5]).starts(), one.starts())


def test_an_optimizer_is_trained_on_the_losses_of_a_task_alone():
    task = QuadraticTask()
    runs = runs_of(task, deviation=0.1, seed=0, cost=task.observe)
    learned = MetricOptMLP(8, ("gradient", "loss change", "time"))
    objective = Objective(metric_weight=0.0)
    settings = OptimizerTraining(iterations=40, rate=1e-2, objective=objective)
    before = mean_objective(learned, runs(range(900, 932)), objective)
    train_optimizer(learned, runs, settings)
    assert mean_objective(learned, runs(range(900, 932)), objective) < before - 0.3
    assert task.queries == 0


def test_a_run_that_diverges_stays_where_it_was():
    learned = Descent(-0.01, dtype=torch.float32)
    found = observed_run(
        learned,
        SteepTask(),
        torch.stack([QuadraticTask().loss_minimum + 1, QuadraticTask().loss_minimum]),
        steps=6,
        batches=seeded_batches("test"),
    )
    stopped = int(found.frozen_at[0])
    assert 0 < stopped < 6
    assert torch.isfinite(found.path).all()
    assert torch.isfinite(found.losses).all()
    assert (found.path[0, stopped:] == found.path[0, stopped - 1]).all()
