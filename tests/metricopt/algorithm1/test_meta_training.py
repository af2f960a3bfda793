"""Algorithm 1, lines 1-8: the value function learned from trajectories of a task."""

import math
from dataclasses import replace

import pytest
import torch

from metricopt.algorithm1.health import check_health
from metricopt.algorithm1.meta_preparation import pack
from metricopt.algorithm1.meta_training import (
    MetaTraining,
    interpolate_weights,
    meta_train,
)
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.algorithm1.objective import (
    Points,
    equal_weight,
    fisher_sets,
    mine,
    objective,
    regression_term,
    value_loss,
)
from metricopt.algorithm1.recipe import GAMMA, LITERAL, RECIPE, Recipe
from metricopt.algorithm1.trajectories import GUIDED, LOSS, Rollout, collect
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
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


def test_outer_steps_interpolate_weights_and_copy_statistics():
    initial, adapted = ValueFunction(3, seeded(1)), ValueFunction(3, seeded(2))
    adapted(torch.randn(8, 3, generator=seeded()))
    expected = {
        name: weight.detach() + 0.3 * (adapted.get_parameter(name) - weight).detach()
        for name, weight in initial.named_parameters()
    }
    interpolate_weights(initial, adapted, 0.3)
    for name, weight in initial.named_parameters():
        torch.testing.assert_close(weight.detach(), expected[name])
    for name, statistic in initial.named_buffers():
        assert torch.equal(statistic, adapted.get_buffer(name))


@pytest.fixture
def batch():
    generator = seeded(3)
    return Points(
        torch.randn(5, 8, 4, generator=generator),
        torch.rand(5, 8, generator=generator),
        0.01 + 0.1 * torch.rand(5, 8, generator=generator),
    )


def test_the_objective_is_the_value_loss_in_standardised_costs(batch):
    value_function = ValueFunction(4, seeded()).eval()
    value_function.cost_mean.fill_(0.4)
    value_function.cost_deviation.fill_(0.2)
    recipe = replace(RECIPE, mining="hardest")
    found = objective(value_function, batch, recipe, seeded(), gamma=3.0)
    phi = batch.phi.flatten(0, 1)
    embedding = value_function.embed(phi)
    target = (batch.mean - 0.4) / 0.2, batch.deviation / 0.2
    triplets = mine(embedding, target, "hardest", seeded())
    prediction = ((value_function(phi) - 0.4) / 0.2).view(5, 8)
    expected = value_loss(prediction, embedding, target, triplets, 3.0)
    torch.testing.assert_close(found, expected)


def test_without_uncertainty_all_points_weigh_the_same(batch):
    value_function = ValueFunction(4, seeded()).eval()
    recipe = replace(RECIPE, mining="none", uncertainty=False)
    found = objective(value_function, batch, recipe, seeded(), gamma=1.0)
    predicted = value_function(batch.phi.flatten(0, 1)).view(5, 8)
    torch.testing.assert_close(found, (predicted - batch.mean).abs().mean())
    weighted = objective(
        value_function, batch, replace(recipe, uncertainty=True), seeded(), gamma=1.0
    )
    expected = regression_term(predicted, batch.mean, batch.deviation)
    torch.testing.assert_close(weighted, expected)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_both_terms_start_with_the_same_size_whatever_the_metric(batch, scale):
    value_function = ValueFunction(4, seeded()).eval()
    before = {name: part.clone() for name, part in value_function.state_dict().items()}
    batch = Points(batch.phi, batch.mean * scale, batch.deviation * scale)
    gamma = equal_weight(value_function, batch, RECIPE, seeded(1))
    for name, part in value_function.state_dict().items():
        assert torch.equal(part, before[name])
    value_function.train()
    both = objective(value_function, batch, RECIPE, seeded(1), gamma=gamma)
    ordinal = objective(value_function, batch, RECIPE, seeded(1), gamma=0.0)
    torch.testing.assert_close(both, 2 * ordinal)


def test_without_triplets_the_ordinal_term_counts_as_that_of_a_blind_embedding(batch):
    value_function, recipe = ValueFunction(4, seeded()), replace(RECIPE, mining="none")
    gamma = equal_weight(value_function, batch, recipe, seeded())
    found = objective(value_function, batch, recipe, seeded(), gamma=gamma)
    assert found.item() == pytest.approx(math.log(2), rel=1e-5)


@pytest.mark.parametrize("mining", ["multi-similarity", "hardest", "random", "none"])
@pytest.mark.parametrize("count", [40, 300])
def test_mined_triplets_come_from_the_fisher_sets(mining, count):
    generator = seeded(4)
    embedding = torch.randn(count, 5, generator=generator)
    target = torch.rand(count, generator=generator), torch.full((count,), 0.1)
    triplets = mine(embedding, target, mining, generator)
    positive, negative = fisher_sets(*target)
    assert (len(triplets) == 0) == (mining == "none")
    assert triplets.shape[1:] == (3,)
    anchor, near, far = triplets.unbind(1)
    assert positive[anchor, near].all()
    assert negative[anchor, far].all()


def test_a_recipe_needs_tasks_blocks_and_groups():
    for setting in ("tasks", "block", "group"):
        with pytest.raises(ConfigError, match="tasks, block and group >= 1, got"):
            Recipe(**{setting: 0})
