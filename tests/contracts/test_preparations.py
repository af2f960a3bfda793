"""What every method promises of what its runs share."""

import json
from dataclasses import replace

import pytest
import torch

from metricopt.algorithm1.meta_training import meta_train
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.algorithm1.metricopt_literal import LiteralMetricOpt
from metricopt.algorithm1.metricopt_mirror import MirrorMetricOpt
from metricopt.algorithm_s1.metricopt_learned import MetricOptLearned
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Preparation, method_name
from metricopt.methods.result import Budget
from metricopt.tasks.descent import loss_optimizer, loss_rate, paired_streams
from tests.contracts.outputs_task import budget_of, quick, seeded, task_for
from tests.metricopt.quadratic_task import QuadraticTask

NAMES = [name for name in METHODS if METHODS.get(name).__module__.startswith("metric")]
LEARNERS = {
    "metricopt": MetricOpt,
    "metricopt-literal": LiteralMetricOpt,
    "metricopt-mirror": MirrorMetricOpt,
}
BUDGET = Budget(queries=45, gradient_steps=12)


@pytest.fixture(params=NAMES)
def method(request):
    return quick(request.param)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param](rate=0.1)


def test_a_run_makes_what_it_is_not_given(method):
    task, other = (task_for(method_name(method)) for _ in range(2))
    generator = seeded()
    # Starts and mini-batches come first, so that they do not depend on what follows.
    paired_streams(generator)
    budget = budget_of(method_name(method))
    prepared = method.prepare(task, budget, generator)
    assert isinstance(prepared, Preparation)
    assert task.queries == prepared.queries <= budget.queries
    shared = method.run(task, budget, seeded(), rows=2, prepared=prepared)
    alone = method.run(other, budget, seeded(), rows=2)
    assert torch.equal(shared.phi, alone.phi)
    assert (shared.queries, shared.notes) == (alone.queries, alone.notes)
    assert task.queries == other.queries
    assert shared.shared_queries >= prepared.queries


def test_a_preparation_is_for_any_number_of_runs(method):
    budget = budget_of(method_name(method))
    prepared = method.prepare(task_for(method_name(method)), budget, seeded())
    before = {name: tensor.clone() for name, tensor in prepared.tensors.items()}
    task, same, other = (task_for(method_name(method)) for _ in range(3))
    first = method.run(task, budget, seeded(1), prepared=prepared)
    again = method.run(same, budget, seeded(1), prepared=prepared)
    method.run(other, budget, seeded(2), prepared=prepared)
    assert torch.equal(first.phi, again.phi)
    assert task.queries == first.queries - prepared.queries
    assert before.keys() == prepared.tensors.keys()
    assert all(torch.equal(before[name], prepared.tensors[name]) for name in before)


def test_only_what_is_prepared_has_a_key_and_a_value_function(method):
    key = method.preparation_key(BUDGET)
    prepared = method.prepare(task_for(method_name(method)), BUDGET, seeded())
    trained = method.value_function(prepared)
    learns = isinstance(method, (*LEARNERS.values(), MetricOptLearned))
    assert (key is not None) == (trained is not None) == learns
    assert (prepared.queries > 0) == bool(prepared.tensors) == learns
    assert json.loads(json.dumps(key)) == key
    assert all(isinstance(fact, float) for fact in prepared.facts.values())


def test_it_suits_and_is_fitted_without_changing_what_is_asked_for(method):
    assert method.suits(task_for(method_name(method)))
    fitted = method.fitted(Budget(600, 30))
    assert type(fitted) is type(method)
    assert isinstance(fitted, Method)
    assert method_name(fitted) == method_name(method) in METHODS
    assert fitted.fitted(Budget(600, 30)) == fitted


def test_the_key_is_what_decides_the_value_function(learner):
    recipe = learner.recipe
    key = learner.preparation_key(BUDGET)
    assert set(key) == {"recipe", "trajectories", "literal", "steps", "rate"}
    assert key["literal"] == isinstance(learner, LiteralMetricOpt)
    assert key["recipe"]["tasks"] < recipe.tasks
    assert key["recipe"]["rollout"]["steps"] == recipe.rollout.steps
    others = [
        learner.preparation_key(Budget(100, 12)),
        learner.preparation_key(Budget(45, 13)),
        replace(learner, rate=0.2).preparation_key(BUDGET),
        replace(learner, rate=None).preparation_key(BUDGET),
        replace(learner, recipe=replace(recipe, gamma=1.0)).preparation_key(BUDGET),
    ]
    assert all(other != key for other in others)
    assert "rate" not in others[3]
    steps = replace(learner, steps=learner.steps[::-1])
    assert steps.preparation_key(BUDGET) == key


def test_too_small_a_budget_has_no_key_and_no_preparation(learner):
    small = Budget(10, 12)
    for call in (
        lambda: learner.preparation_key(small),
        lambda: learner.prepare(QuadraticTask(), small, seeded()),
    ):
        with pytest.raises(
            ConfigError, match=r"budget of 10 queries, .* reserved for la"
        ):
            call()


def test_the_value_function_is_the_one_that_was_trained(learner):
    task = QuadraticTask()
    found = learner.value_function(learner.prepare(task, BUDGET, seeded()))
    recipe = replace(learner.recipe, tasks=found.recipe.tasks)
    factory = loss_optimizer("sgd", 0.1)
    expected = meta_train(QuadraticTask(), recipe, factory, seeded())
    assert found.recipe == recipe
    assert (found.queries, found.spread) == (expected.queries, expected.spread)
    assert (found.reach, task.queries) == (expected.reach, found.queries)
    weights = found.value_function.state_dict()
    for name, weight in expected.value_function.state_dict().items():
        assert torch.equal(weights[name], weight)
    assert not found.value_function.training


def test_a_rate_that_is_not_given_is_that_of_the_task(learner):
    task, other = QuadraticTask(), QuadraticTask()
    chosen = replace(learner, rate=None).prepare(task, BUDGET, seeded())
    rate = loss_rate(other, "sgd", BUDGET.gradient_steps)
    assert task.rates == {("sgd", BUDGET.gradient_steps, 0.1): rate}
    given = replace(learner, rate=rate).prepare(other, BUDGET, seeded())
    assert chosen.facts == given.facts
    for name, tensor in chosen.tensors.items():
        assert torch.equal(tensor, given.tensors[name])


@pytest.mark.parametrize("name", ["loss-only", "loss-only-dense"])
def test_the_loss_alone_takes_the_rate_of_the_task(name):
    task, kind = QuadraticTask(), METHODS.get(name)
    found = kind(optimizer="adam").run(task, BUDGET, seeded(), rows=2)
    rate = task.rates["adam", BUDGET.gradient_steps, 0.1]
    given = kind(optimizer="adam", rate=rate).run(task, BUDGET, seeded(), rows=2)
    assert torch.equal(found.phi, given.phi)
    other = kind(optimizer="adam", rate=rate / 3).run(task, BUDGET, seeded(), rows=2)
    assert not torch.equal(found.phi, other.phi)


def test_progress_is_told_of_every_block(learner):
    told = []
    learner.prepare(
        QuadraticTask(),
        Budget(300, 12),
        seeded(),
        progress=lambda done, all_: told.append((done, all_)),
    )
    tasks = learner.preparation_key(Budget(300, 12))["recipe"]["tasks"]
    block = learner.recipe.block
    assert told == [
        (min(done, tasks), tasks) for done in range(block, tasks + block, block)
    ]


def test_what_holds_no_value_function_is_refused(learner):
    with pytest.raises(ConfigError, match=r"must hold a value function .* got tensors"):
        learner.value_function(Preparation())
