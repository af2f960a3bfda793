"""Algorithm S1: what it learns, what it queries, and what its runs share."""

from dataclasses import replace

import pytest
import torch

from metricopt.algorithm1.recipe import RECIPE
from metricopt.algorithm1.trajectories import Rollout
from metricopt.algorithm_s1.joint_training import JointTraining
from metricopt.algorithm_s1.metricopt_learned import TRAINING, MetricOptLearned
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import MetricOptMLP, OptimizerTraining
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from metricopt.methods.result import Budget
from metricopt.tasks.descent import paired_streams, starts
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.quadratic_task import SIZE, QuadraticTask

BUDGET = Budget(queries=50, gradient_steps=6)
SMALL = OptimizerTraining(iterations=3, tasks=2, pairs=1)


def test_it_improves_loss_and_metric_within_its_budget():
    task, budget = QuadraticTask(), Budget(queries=700, gradient_steps=8)
    method = MetricOptLearned(training=replace(TRAINING, rate=1e-2, first_steps=8))
    found = method.run(task, budget, seeded(), rows=6)
    # 700 queries less 3 of the run pay for 58 iterations of 4 tasks, 3 queries each.
    assert found.notes["iterations"] == 58
    assert found.shared_queries == 58 * 4 * 3
    assert found.queries == found.shared_queries + 3
    assert task.queries == found.shared_queries + 6 * 3
    before = torch.zeros(1, SIZE)
    assert task.cost(found.phi).mean() < 0.85 * task.cost(before)
    distance = (found.phi - task.loss_minimum).norm(dim=1).mean()
    assert distance < 0.7 * (before - task.loss_minimum).norm()


def test_own_queries_are_charged_where_they_are_made():
    found = MetricOptLearned(training=SMALL).run(
        QuadraticTask(), BUDGET, seeded(), rows=2
    )
    own = {each.step: each.queries - found.shared_queries for each in found.checkpoints}
    # Observed before steps 1, 3 and 6.
    assert own == {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 2, 6: 3}


def test_meta_training_shows_what_was_observed(monkeypatch):
    task, optimizer, observed = QuadraticTask(), MetricOptMLP(8, ALL_INPUTS), []
    observe = task.observe

    def noted(phi):
        observed.append((phi, observe(phi)))
        return observed[-1][1]

    monkeypatch.setattr(task, "observe", noted)
    recipe = replace(RECIPE, on_policy=0.0, tasks=4, rollout=Rollout(8, 3))
    runs = JointTraining(task, optimizer, recipe, seeded())(range(4))
    assert task.queries == 4 * 3
    for step, (phi, costs) in zip((0, 4, 7), observed, strict=True):
        predicted = runs.costs(phi[None], step)
        assert not torch.allclose(predicted[0], costs.float(), atol=1e-3)
        shown = runs.shown(predicted, step)
        torch.testing.assert_close(shown[0], costs)
        # Beside it, what is predicted of the way from there is added.
        moved = (predicted + 0.01 - predicted.max()).clamp(0, 1)
        offset = costs - predicted[0]
        torch.testing.assert_close(
            runs.shown(moved, step)[0], (moved[0] + offset).clamp(0, 1)
        )
    assert torch.equal(runs.shown(predicted, 1), predicted)


def test_a_known_optimizer_is_used_as_it_is():
    method, task = MetricOptLearned(training=SMALL), QuadraticTask()
    prepared = method.prepare(task, BUDGET, seeded(1))
    assert task.queries == prepared.queries == 3 * 2 * 3
    before = {name: value.clone() for name, value in prepared.tensors.items()}
    results = [
        method.run(QuadraticTask(), BUDGET, seeded(2), rows=2, prepared=prepared)
        for _ in range(2)
    ]
    assert torch.equal(results[0].phi, results[1].phi)
    assert all(torch.equal(before[n], v) for n, v in prepared.tensors.items())


def test_the_value_function_is_there_to_look_at():
    method = MetricOptLearned(training=SMALL)
    prepared = method.prepare(QuadraticTask(), BUDGET, seeded(1))
    trained = method.value_function(prepared)
    assert trained.value_function(draw(4, SIZE)).shape == (4,)
    assert trained.recipe.tasks == 6
    assert trained.queries == prepared.queries


def test_runs_start_as_those_of_other_methods():
    found = MetricOptLearned(training=SMALL).run(
        QuadraticTask(), BUDGET, seeded(3), rows=2
    )
    descent = paired_streams(seeded(3)).descent
    expected = starts(SIZE, 2, 0.1, descent)
    assert torch.equal(found.checkpoints[0].phi, expected)


def joint(task, **changes):
    optimizer = MetricOptMLP(6, ALL_INPUTS)
    recipe = replace(
        RECIPE, tasks=6, block=2, group=2, on_policy=0.0, rollout=Rollout(6, 3)
    )
    done = []
    training = JointTraining(
        task,
        optimizer,
        replace(recipe, **changes),
        seeded(),
        progress=lambda *count: done.append(count),
    )
    return training, done


def test_every_iteration_updates_both_and_queries_its_runs():
    task = QuadraticTask()
    training, done = joint(task)
    before = [w.detach().clone() for w in training.optimizer.parameters()]
    first = training.value.value_function.head.weight.detach().clone()
    trained = training.train(SMALL)
    assert done == [(2, 6), (4, 6), (6, 6)]
    assert trained.queries == task.queries == 3 * 2 * 3
    assert len(trained.value_losses) == 3
    assert len(trained.happened.losses) == 3
    weights = list(trained.optimizer.parameters())
    pairs = zip(weights, before, strict=True)
    assert all(not torch.equal(now, then) for now, then in pairs)
    assert not torch.equal(training.value.value_function.head.weight, first)
    assert not trained.optimizer.training


def test_the_optimizer_is_judged_by_the_adapted_value_function_alone():
    task = QuadraticTask()
    training, _ = joint(task)
    runs = training(range(2))
    queries = task.queries
    phi = draw(3, 2, SIZE)
    costs = runs.costs(phi, 0)
    expected = training.value.adapted(phi.flatten(0, 1)).clamp(0, 1).view(3, 2)
    assert torch.equal(costs, expected)
    assert task.queries == queries
    assert not training.value.adapted.training


@pytest.mark.parametrize("queries", [0, 8])
def test_a_budget_without_any_iteration_is_refused(queries):
    task, budget = QuadraticTask(), Budget(queries, 6)
    message = f"a budget of {queries} queries, 3 of them reserved for the run itself"
    for call in (MetricOptLearned(training=SMALL).run, MetricOptLearned().prepare):
        with pytest.raises(ConfigError, match=message):
            call(task, budget, seeded())
    assert task.queries == 0


def test_the_key_tells_preparations_apart():
    method = MetricOptLearned(training=SMALL)
    key = method.preparation_key(BUDGET)
    assert key == method.preparation_key(BUDGET)
    assert key != method.preparation_key(Budget(50, 7))
    assert key != replace(method, scale=0.2).preparation_key(BUDGET)
