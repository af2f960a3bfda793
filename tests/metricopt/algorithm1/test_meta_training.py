"""Algorithm 1, lines 1-8: the value function learned from trajectories of a task."""

from dataclasses import replace

import pytest
import torch

from metricopt.algorithm1.health import check_health
from metricopt.algorithm1.meta_preparation import pack
from metricopt.algorithm1.meta_training import MetaTraining, meta_train
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.algorithm1.recipe import GAMMA, LITERAL, RECIPE
from metricopt.algorithm1.trajectories import GUIDED, LOSS, Rollout, collect
from metricopt.methods.controls import LossOnly
from metricopt.methods.result import Budget
from metricopt.tasks.descent import loss_optimizer
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import FlatTask, QuadraticTask

ROLLOUT = Rollout(steps=20, observations=3)
FACTORY = loss_optimizer("sgd", 0.1)
SMALL = replace(RECIPE, tasks=160, block=16, rollout=ROLLOUT)
TINY = replace(RECIPE, tasks=12, block=4, group=2, rollout=Rollout(6, 2))


def weights(trained):
    return trained.value_function.state_dict()


def equal_weights(one, other):
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


def training_of(task=None, **changes):
    recipe = replace(TINY, **changes)
    return MetaTraining(task or QuadraticTask(), recipe, FACTORY, seeded())


@pytest.fixture(scope="module")
def trained():
    return meta_train(QuadraticTask(), SMALL, FACTORY, seeded())


@pytest.fixture(scope="module")
def tiny():
    return meta_train(QuadraticTask(), TINY, FACTORY, seeded())


# What it learns.


def test_it_ranks_phi_as_the_metric_does(trained):
    task = QuadraticTask()
    held_out = collect(task, FACTORY, ROLLOUT, rows=40, generator=seeded(99))
    health = check_health(trained.value_function, held_out)
    assert health.spearman > 0.8
    assert health.error < health.spread


def test_following_it_lowers_the_metric_clearly_below_the_loss_alone(trained):
    task, budget = QuadraticTask(), Budget(trained.queries + 100, 40)
    method = MetricOpt(recipe=SMALL, rate=0.1)
    guided = method.run(task, budget, seeded(7), rows=8, prepared=pack(trained))
    alone = LossOnly(rate=0.1).run(task, budget, seeded(7), rows=8)
    control = task.cost(alone.phi)
    assert task.cost(guided.phi).mean() < 0.85 * control.mean()
    # The loss alone ends where the loss is least, as it should.
    least = task.cost(task.loss_minimum[None])
    torch.testing.assert_close(control.mean(), least.mean(), rtol=0.1, atol=0.0)


def test_health_is_reported_and_charged(trained):
    task, budget = QuadraticTask(), Budget(trained.queries + 100, 5)
    method = MetricOpt(recipe=SMALL, rate=0.1, health_tasks=10)
    result = method.run(task, budget, seeded(7), prepared=pack(trained))
    assert result.notes["spearman_loss"] > 0.8
    assert result.notes["spearman_guided"] > 0.5
    # The observations of held-out trajectories and the trials of the step sizes.
    assert result.queries == trained.queries + task.queries
    assert task.queries > 10 * ROLLOUT.observations


def test_the_published_recipe_runs():
    recipe = replace(LITERAL, tasks=40, rollout=ROLLOUT)
    task = QuadraticTask()
    found = meta_train(task, recipe, FACTORY, seeded())
    assert len(found.losses) == 40
    assert found.queries == task.queries == 40 * ROLLOUT.observations
    assert sum(found.losses[-10:]) < sum(found.losses[:10])
    # Raw costs, and trajectories of the loss alone.
    assert found.value_function.cost_mean == 0.0
    assert found.value_function.cost_deviation == 1.0
    assert task.loss_evaluations == 40 * ROLLOUT.steps
    assert not found.value_function.training


# The ways it can be set.


@pytest.mark.parametrize(
    "settings",
    [
        *({"mining": mining} for mining in ("hardest", "random", "none")),
        *({"returned": returned} for returned in ("adapted", "initial")),
        *({"on_policy": share} for share in (0.0, 1.0)),
        {"uncertainty": False},
        {"replay": 2},
        {"outer_rate": "constant"},
        {"inner_optimizer": "sgd"},
        {"standardise_cost": False},
        {"gamma": 10.0},
        {"group": 1, "replay": 8},
        {"group": 1, "inner_steps": 1},
        {"block": 5},
        {"queries_on": "train"},
    ],
    ids=str,
)
def test_every_setting_trains_to_finite_weights_that_differ(tiny, settings):
    task = QuadraticTask()
    found = meta_train(task, replace(TINY, **settings), FACTORY, seeded())
    assert all(torch.isfinite(weight).all() for weight in weights(found).values())
    assert all(loss == loss for loss in found.losses)
    assert found.queries == task.queries
    groups = {1: 12, 2: 6}[settings.get("group", 2)]
    # Blocks of 5, 5 and 2 are 3 + 3 + 1 groups.
    assert len(found.losses) == (7 if settings.get("block") == 5 else groups)
    phi = torch.randn(5, task.size, generator=seeded(1))
    same = torch.equal(tiny.value_function(phi), found.value_function(phi))
    unchanged = {name: getattr(TINY, name) for name in settings} == settings
    assert same == unchanged


def test_the_generator_decides_everything(tiny):
    torch.manual_seed(5)
    again, other = (
        weights(meta_train(QuadraticTask(), TINY, FACTORY, seeded(seed)))
        for seed in (0, 1)
    )
    assert equal_weights(weights(tiny), again)
    assert not equal_weights(weights(tiny), other)


def test_progress_is_told_after_every_block():
    told, recipe = [], replace(TINY, tasks=10)

    def note(done, total):
        told.append((done, total))

    meta_train(QuadraticTask(), recipe, FACTORY, seeded(), progress=note)
    assert told == [(4, 10), (8, 10), (10, 10)]


def test_a_metric_that_never_moves_is_learned_as_a_constant():
    found = meta_train(FlatTask(), TINY, FACTORY, seeded())
    phi = torch.randn(20, 6, generator=seeded())
    predicted = found.value_function(phi)
    torch.testing.assert_close(predicted, torch.full((20,), 0.25), rtol=0.0, atol=0.01)


def test_a_single_observation_in_all_is_enough_to_run():
    recipe = replace(TINY, tasks=1, rollout=Rollout(6, 1))
    found = meta_train(QuadraticTask(), recipe, FACTORY, seeded())
    assert found.queries == 1
    assert all(torch.isfinite(weight).all() for weight in weights(found).values())


def test_costs_are_standardised_anew_with_every_block_and_phi_by_the_first():
    task = QuadraticTask()
    training = training_of(task)
    deviations = []
    for block in range(3):
        training.advance()
        costs = task.cost(torch.cat(task.observed)).float()
        for found in (training.value_function, training.adapted):
            torch.testing.assert_close(found.cost_mean, costs.mean())
            torch.testing.assert_close(found.cost_deviation, costs.std())
        if block == 0:
            mean = training.value_function.phi_mean.clone()
        assert torch.equal(training.value_function.phi_mean, mean)
        deviations.append(costs.std().item())
    # Guided trajectories go farther: constants of the first block would not fit them.
    assert len(set(deviations)) == 3


def test_the_weight_of_the_regression_is_measured_once():
    training = training_of()
    assert training.gamma is None
    training.advance()
    gamma = training.gamma
    assert 0.1 < gamma < 10
    training.advance()
    assert training.gamma == gamma
    given = training_of(gamma=3.0)
    given.advance()
    assert given.gamma == 3.0
    assert LITERAL.gamma == GAMMA == 10.0


def test_every_kind_of_trajectory_has_a_kernel_of_its_own():
    training = training_of()
    training.advance()
    assert training.interpolators[GUIDED].kernel is None
    first = training.interpolators[LOSS].kernel
    training.advance()
    along_loss = training.interpolators[LOSS].kernel
    guided = training.interpolators[GUIDED].kernel
    # One loss trajectory more does not double their number, so that kernel stays.
    assert along_loss == first
    assert guided.signal_variance != first.signal_variance


def test_on_policy_trajectories_stay_within_reach_of_what_is_known():
    task = QuadraticTask()
    training = training_of(task, on_policy=1.0, growth=1.5, step_share=50.0)
    training.advance()
    bound = 1.5 * training.reach
    training.advance()
    distance = (torch.cat(task.observed) - training.value_function.phi_mean).norm(dim=1)
    assert distance.max() <= bound + 1e-4
    assert training.reach <= bound + 1e-4


def test_queries_on_train_parts_leave_out_how_hard_the_part_is():
    class VeryUnevenParts(QuadraticTask):
        def _observe_train(self, phi, generator):
            return self.cost(phi) / 2 + 0.4 * torch.rand((), generator=generator)

    training = training_of(VeryUnevenParts(), queries_on="train", on_policy=0.0)
    phi = torch.randn(3, 6, generator=seeded())
    first, second = training._query(phi), training._query(phi)
    torch.testing.assert_close(first, second)
    assert training.queries == training.task.queries == 8


def test_the_rate_of_reptile_falls_linearly_or_is_constant(monkeypatch):
    rates = []
    monkeypatch.setattr(
        "metricopt.algorithm1.meta_training.interpolate_weights",
        lambda initial, adapted, eta: rates.append(eta),
    )
    meta_train(QuadraticTask(), TINY, FACTORY, seeded())
    assert rates == pytest.approx([1 - done / 12 for done in range(0, 12, 2)])
    rates.clear()
    meta_train(QuadraticTask(), replace(TINY, outer_rate="constant"), FACTORY, seeded())
    assert rates == [1.0] * 6
