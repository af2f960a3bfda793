"""What every registered method promises, whatever it does."""

import functools
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.algorithm1.recipe import RECIPE
from metricopt.algorithm1.trajectories import Rollout
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Sees
from metricopt.methods.result import Budget
from tests.contracts.outputs_task import (
    KINDS,
    budget_of,
    flat_task_for,
    quick,
    seeded,
    task_for,
)
from tests.metricopt.quadratic_task import QuadraticTask

# Not what other tests have registered.
PACKAGES = ("metricopt.", "baselines.")
NAMES = [name for name, kind in KINDS.items() if kind.__module__.startswith(PACKAGES)]
EXPECTED = """
adaptive-surrogates cma-es dictionary guided-cma loss-only loss-only-dense lq-cma-es
metricopt metricopt-learned metricopt-literal metricopt-mirror metricopt-outputs
random-search trust-region-bo untouched white-box
"""
STEPS = 12


@functools.cache
def ran(name, rows=2, seed=0):
    """A method's result on the task for it, and that task."""
    task = task_for(name)
    return quick(name).run(task, budget_of(name), seeded(seed), rows=rows), task


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_the_package_walk_finds_every_method():
    assert set(NAMES) >= set(EXPECTED.split())


def test_declarations(name):
    kind = KINDS[name]
    assert issubclass(kind, Method)
    assert kind.sees in get_args(Sees)
    assert kind.__doc__
    assert kind.run.__doc__


@pytest.mark.parametrize("rows", [1, 2])
def test_shapes(name, rows):
    result, task = ran(name, rows)
    assert result.phi.shape == (rows, task.size)
    assert result.phi.dtype == torch.float32
    assert torch.isfinite(result.phi).all()
    assert not result.phi.requires_grad
    for checkpoint in result.checkpoints:
        assert checkpoint.phi.shape == (rows, task.size)
        assert checkpoint.cost.shape == (rows,)
        assert checkpoint.cost.dtype == torch.float64
    assert all(isinstance(figure, float | int) for figure in result.notes.values())


@pytest.mark.parametrize("rows", [1, 2])
def test_it_charges_what_it_spent_and_no_more_than_the_budget(name, rows):
    result, task = ran(name, rows)
    own = result.queries - result.shared_queries
    assert 0 <= result.shared_queries <= result.queries <= budget_of(name).queries
    assert task.queries == result.shared_queries + rows * own
    assert 0 <= result.gradient_steps <= STEPS


def test_what_a_row_is_charged_with_does_not_depend_on_the_number_of_rows(name):
    one, two = ran(name, 1)[0], ran(name, 2)[0]
    assert one.queries == two.queries
    assert one.shared_queries == two.shared_queries
    assert one.gradient_steps == two.gradient_steps
    assert len(one.checkpoints) == len(two.checkpoints)


def test_it_never_asks_for_more_than_the_task_allows(name):
    task = task_for(name)
    budget = budget_of(name)
    task.meter.limit = budget.queries
    quick(name).run(task, budget, seeded(1), rows=1)
    assert task.queries <= budget.queries


@pytest.mark.parametrize("queries", [0, 1, 7, 20, 41])
def test_a_small_budget_is_kept_or_refused_in_a_sentence(name, queries):
    task = task_for(name)
    task.meter.limit = queries
    try:
        result = quick(name).run(task, Budget(queries, 4), seeded(2))
    except ConfigError as error:
        assert "budget" in str(error)
        assert task.queries == 0
    else:
        assert result.queries == task.queries <= queries
        assert result.gradient_steps <= 4


def test_checkpoints_are_in_order_and_end_at_the_result(name):
    result, _ = ran(name)
    spent = [(point.step, point.queries) for point in result.checkpoints]
    assert spent == sorted(spent)
    assert len(set(spent)) == len(spent)
    last = result.checkpoints[-1]
    assert (last.step, last.queries) == (result.gradient_steps, result.queries)
    assert torch.equal(last.phi, result.phi)


def test_the_costs_of_checkpoints_are_those_observed(name):
    result, task = ran(name)
    for point in result.checkpoints:
        known = ~point.cost.isnan()
        assert torch.equal(point.cost[known], task.cost(point.phi)[known])


def test_the_generator_decides_everything(name):
    torch.manual_seed(11)
    np.random.seed(11)
    task = task_for(name)
    again = quick(name).run(task, budget_of(name), seeded(), rows=2)
    assert torch.equal(again.phi, ran(name)[0].phi)
    assert again.notes == ran(name)[0].notes
    if name != "untouched":
        assert not torch.equal(again.phi, ran(name, 2, 1)[0].phi)


def test_rows_are_repetitions_of_their_own(name):
    phi = ran(name)[0].phi
    assert (len(phi.unique(dim=0)) == 2) == (name != "untouched")


def test_the_untouched_network_has_no_phi():
    result, task = ran("untouched")
    assert torch.equal(result.phi, torch.zeros(2, task.size))


# What learns a value function first needs more queries to improve than these: see
# the tests of meta-training.
SLOW = {
    *("metricopt", "metricopt-learned", "metricopt-literal", "metricopt-mirror"),
    *("portfolio", "untouched"),
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_it_improves_on_the_untouched_network(name):
    result, task = ran(name)
    before = task.cost(torch.zeros(1, task.size)).item()
    assert task.cost(result.phi).mean() < 0.97 * before
    assert (task.cost(result.phi) <= before).all()


def test_dense_evaluation_is_as_good_as_the_best_of_its_last_steps():
    dense, task = ran("loss-only-dense")
    last, _ = ran("loss-only")
    assert dense.queries == STEPS + 1
    assert (task.cost(dense.phi) <= task.cost(last.phi)).all()
    few = METHODS.get("loss-only-dense")().run(task, Budget(3, 12), seeded(), rows=2)
    assert few.queries == 3
    assert few.gradient_steps == 12
    assert [point.step for point in few.checkpoints] == [10, 11, 12]


@pytest.mark.parametrize("queries", range(40, 52, 3))
@pytest.mark.parametrize(("block", "on_policy"), [(1, 0.5), (2, 0.5), (5, 0.0), (5, 1)])
def test_parts_of_the_train_split_stay_within_the_budget_and_use_it(
    queries, block, on_policy
):
    recipe = replace(
        RECIPE,
        queries_on="train",
        block=block,
        on_policy=on_policy,
        rollout=Rollout(2, 2),
        inner_steps=1,
    )
    task, method = QuadraticTask(), MetricOpt(recipe=recipe, rate=0.1, health_tasks=2)
    result = method.run(task, Budget(queries, 1), seeded())
    assert result.queries == task.queries <= queries
    assert result.queries > 0.5 * queries


@pytest.mark.parametrize(
    "search",
    ["cma-es", "guided-cma", "lq-cma-es", "random-search", "trust-region-bo"],
)
def test_a_search_returns_the_best_it_observed(search):
    result, task = ran(search)
    observed = task.cost(torch.cat(task.observed)).min()
    assert task.cost(result.phi).min() == observed
    costs = torch.stack([point.cost for point in result.checkpoints])
    assert (costs[1:] <= costs[:-1]).all()


def test_a_metric_that_never_moves_stops_no_method(name):
    task = flat_task_for(name)
    result = quick(name).run(task, budget_of(name), seeded(), rows=2)
    assert torch.isfinite(result.phi).all()
    assert result.queries <= budget_of(name).queries


def test_no_gradient_steps_are_taken_if_none_are_allowed(name):
    task = task_for(name)
    result = quick(name).run(task, replace(budget_of(name), gradient_steps=0), seeded())
    assert result.gradient_steps == 0
    assert result.phi.shape == (1, task.size)
