"""A geometry of phi, learned with the value function in place of the metric."""

import functools
from dataclasses import replace

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.func import vmap
from torch.nn.utils import parameters_to_vector

from metricopt.adapters.blocks import quarters
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.algorithm1.meta_training import meta_train
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.algorithm1.metricopt_mirror import MirrorMetricOpt
from metricopt.algorithm1.mirror_training import (
    LearnedGeometry,
    MirrorRecipe,
    MirrorTraining,
    phi_geometry,
    replayed,
)
from metricopt.algorithm1.optimizer import Guidance, MetricOptimizer
from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.step_choice import guided_optimizer
from metricopt.algorithm1.trajectories import Rollout
from metricopt.errors import ConfigError
from metricopt.finetune import finetune
from metricopt.geometry import Identity, MirrorOptimizer
from metricopt.learned_optimizers.objective import Objective
from metricopt.methods.contract import METHODS
from metricopt.methods.result import Budget
from metricopt.on_outputs.statistics_value import explain
from metricopt.reading.callables import make_metric
from metricopt.tasks.descent import loss_optimizer, run, starts
from metricopt.tasks.network_task import NetworkTask
from metricopt.tasks.sampling import Split
from tests.contracts.outputs_task import SIZE as OUTPUTS_SIZE
from tests.contracts.outputs_task import OutputsTask
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.quadratic_task import SIZE, QuadraticTask

STEPS = 20
BUDGET = Budget(queries=100, gradient_steps=STEPS)


@functools.cache
def digit_eight():
    """Digit 8 against all others: F of a small network, under balanced weights."""
    pixels, digits = load_digits(return_X_y=True)
    inputs = torch.tensor(pixels / 16, dtype=torch.float32)
    targets = torch.tensor(digits == 8).long()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 1))
    weighted = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(4.0))

    def loss(outputs, targets):
        return weighted(outputs[:, 0], targets.float())

    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(40):
        optimizer.zero_grad()
        loss(network(inputs[:600]), targets[:600]).backward()
        optimizer.step()
    return NetworkTask(
        DynamicBias(network, size=16, example_input=inputs[:4]),
        loss,
        make_metric("f1"),
        train=Split(inputs[:600], targets[:600]),
        observe=Split(inputs[600:], targets[600:]),
    )


@functools.cache
def value_function(seed):
    recipe = Recipe(tasks=48, rollout=Rollout(STEPS, 3))
    return meta_train(digit_eight(), recipe, loss_optimizer("sgd", 0.1), seeded(seed))


@functools.cache
def trained(seed):
    task, recipe = digit_eight(), MirrorRecipe(tasks=160, rate=3e-3)
    training = MirrorTraining(task, value_function(seed), recipe, seeded(seed))
    before = task.queries
    training.train()
    assert task.queries == before
    return training


def moved(size=SIZE, by=0.2, seed=4):
    geometry, generator = phi_geometry(quarters(size), seeded()), seeded(seed)
    with torch.no_grad():
        for weight in geometry.parameters():
            weight += by * torch.randn(weight.shape, generator=generator)
    return geometry


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_lowers_the_objective_on_new_runs_of_a_real_task(seed):
    training = trained(seed)
    plain, learned = (
        training.judge(mirror_map, 16, 500 + seed)
        for mirror_map in (Identity(training.mirror_map.shapes), training.mirror_map)
    )
    assert learned < plain
    assert len(training.objectives) == 160 // 16 * STEPS // 10


def test_updates_that_are_not_finite_are_left_out_and_recorded(monkeypatch):
    task = QuadraticTask()
    recipe = Recipe(tasks=8, block=8, rollout=Rollout(6, 2))
    known = meta_train(task, recipe, loss_optimizer("sgd", 0.1), seeded())
    asked = MirrorRecipe(tasks=4, block=4, window=3)
    training = MirrorTraining(task, known, asked, seeded())
    good, bad = training.windows(training.mirror_map, 4, seeded(1))
    bad = replace(bad, slopes=bad.slopes * torch.nan)
    monkeypatch.setattr(training, "windows", lambda *given: iter([good, bad, good]))
    training.train()
    assert training.skipped == [1] and len(training.objectives) == 3
    weights = parameters_to_vector(training.mirror_map.parameters())
    assert weights.isfinite().all()
    method = MirrorMetricOpt(recipe=recipe, geometry=asked)
    monkeypatch.setattr(MirrorTraining, "windows", lambda *given: iter([good, bad]))
    assert method._geometry(task, known, seeded()).figures["mirror_skipped"] == 1


def test_runs_in_the_identity_are_plain_guided_runs():
    task, known = digit_eight(), value_function(0)
    training = MirrorTraining(task, known, MirrorRecipe(window=8), seeded())
    windows = list(training.windows(training.mirror_map, 3, seeded(7)))
    assert [len(window.moves) for window in windows] == [8, 8, 4]
    path = torch.cat([windows[0].phi[:1], *(window.phi[1:] for window in windows)])
    # Each window evaluates the loss once more, so only the first draws the same.
    generator = seeded(7)
    start = starts(task.size, 3, 0.1, generator)
    factory = guided_optimizer(known, "sgd", STEPS, 0.4, generator)
    expected, losses = run(task, factory, start, 8, generator)
    torch.testing.assert_close(path[:9], expected.transpose(0, 1))
    torch.testing.assert_close(windows[0].losses[:8], losses.T)
    assert torch.equal(windows[1].phi[0], windows[0].phi[-1])


def test_a_replay_has_the_values_of_the_run_and_the_slope_of_the_map():
    geometry, task = moved(), QuadraticTask()
    recipe = Recipe(tasks=8, block=8, rollout=Rollout(6, 2))
    known = meta_train(task, recipe, loss_optimizer("sgd", 0.1), seeded())
    training = MirrorTraining(task, known, MirrorRecipe(window=6), seeded())
    (window,) = training.windows(geometry, 4, seeded(1))
    path = replayed(geometry, window)
    torch.testing.assert_close(path, window.phi)
    z = vmap(geometry.inverse)(window.phi[0]) + window.moves.sum(0)
    torch.testing.assert_close(vmap(geometry)(z), window.phi[-1])
    # The start does not depend on the weights, since z_0 is its inverse.
    slopes = torch.autograd.grad(
        path[0].sum(), list(geometry.parameters()), retain_graph=True
    )
    assert max(slope.abs().max() for slope in slopes) < 1e-4
    slopes = torch.autograd.grad(path[-1].sum(), list(geometry.parameters()))
    assert max(slope.abs().max() for slope in slopes) > 1e-2
    found = training.objective(geometry, window)
    predicted = known.value_function(window.phi.flatten(0, 1)).view(7, 4)
    judged = Objective(sharpness=3.0)
    expected = judged.value(window.losses, predicted.clamp_min(0)).mean()
    torch.testing.assert_close(found, expected)


def test_the_best_of_earlier_windows_counts():
    task, known = QuadraticTask(), value_function_of_quadratic()
    training = MirrorTraining(task, known, MirrorRecipe(window=3), seeded())
    first, second = training.windows(training.mirror_map, 4, seeded(1))
    assert first.best.isinf().all()
    visited = known.value_function(first.phi.flatten(0, 1)).view(4, 4)
    torch.testing.assert_close(second.best, visited.amin(0).clamp_min(0).detach())


def value_function_of_quadratic():
    recipe = Recipe(tasks=8, block=8, rollout=Rollout(6, 2))
    return meta_train(QuadraticTask(), recipe, loss_optimizer("sgd", 0.1), seeded())


def test_the_gradient_of_a_value_function_of_statistics_is_a_direction_too():
    task, tried = OutputsTask(), 0.5 * draw(12, OUTPUTS_SIZE)
    statistics = task.statistics
    known = explain(statistics, statistics.exact(tried), task.observe(tried))
    phi = torch.nn.Parameter(0.1 * draw(3, OUTPUTS_SIZE, seed=1))
    optimizer = MirrorOptimizer(torch.optim.SGD([phi], lr=0.1), moved(OUTPUTS_SIZE))
    costs = []
    for _ in range(6):
        optimizer.zero_grad()
        groups = statistics.smooth(phi, torch.arange(task.examples))
        predicted = known.value.predict(known.of_these(groups))[0]
        predicted.sum().backward()
        costs.append(predicted.detach())
        optimizer.step()
    assert (costs[-1] < costs[0]).all()
    assert optimizer.health.steps == 18


def test_the_guided_direction_is_that_without_a_geometry_and_the_step_is_not():
    known, start = value_function_of_quadratic(), 0.1 * draw(3, SIZE)
    geometry = moved()
    pair = {}
    for name, mirror_map in (("plain", None), ("moved", geometry)):
        phi = torch.nn.Parameter(start.clone())
        inner = torch.optim.SGD([phi], lr=1.0)
        placed = inner if mirror_map is None else MirrorOptimizer(inner, mirror_map)
        optimizer = MetricOptimizer(
            placed,
            known.value_function,
            guidance=Guidance(length=0.1),
            generator=seeded(2),
        )
        phi.grad = draw(3, SIZE, seed=5)
        optimizer.step()
        pair[name] = phi, phi.grad.clone(), placed
    (plain, direction, _), (bent, same, placed) = pair.values()
    # The same direction at the same start, another step.
    assert torch.equal(direction, same)
    torch.testing.assert_close(plain.detach(), start - direction)
    z = vmap(geometry.inverse)(start) - direction
    fell = placed.cosines <= 0
    torch.testing.assert_close(
        bent.detach()[~fell], vmap(geometry)(z).detach()[~fell], rtol=1e-5, atol=1e-6
    )
    assert not torch.allclose(bent, plain)


def test_the_method_shares_preparation_and_queries_with_metricopt():
    plain, mirror = (
        kind(rate=0.1, recipe=Recipe(rollout=Rollout(12, 3)))
        for kind in (MetricOpt, MirrorMetricOpt)
    )
    budget = Budget(60, 12)
    assert plain.preparation_key(budget) == mirror.preparation_key(budget)
    prepared = plain.prepare(QuadraticTask(), budget, seeded())
    other = MirrorMetricOpt(
        rate=0.1, recipe=mirror.recipe, geometry=MirrorRecipe(tasks=16)
    )
    results = []
    for method in (plain, other):
        task = QuadraticTask()
        found = method.run(task, budget, seeded(1), rows=3, prepared=prepared)
        assert task.queries == found.queries - prepared.queries
        results.append(found)
    assert results[0].queries == results[1].queries
    assert torch.equal(*(result.checkpoints[0].phi for result in results))
    assert not torch.equal(results[0].phi, results[1].phi)
    notes = results[1].notes
    assert set(notes) - set(results[0].notes) == {
        *("mirror_cosine", "mirror_fallbacks"),
        *("mirror_objective", "plain_objective"),
    }
    assert 0 <= notes["mirror_fallbacks"] <= 1
    assert 0 < notes["mirror_cosine"] < 1


def test_a_geometry_that_lowers_nothing_is_not_used():
    recipe = Recipe(rollout=Rollout(12, 3))
    for geometry in (MirrorRecipe(tasks=0), MirrorRecipe(tasks=32, rate=10.0)):
        method = MirrorMetricOpt(rate=0.1, recipe=recipe, geometry=geometry)
        notes = method.run(QuadraticTask(), Budget(60, 12), seeded(1)).notes
        assert not notes["mirror_objective"] < notes["plain_objective"]
        assert notes["mirror_cosine"] == pytest.approx(1)
        assert notes["mirror_fallbacks"] == 0


def test_finetune_takes_it_by_name_and_reports_its_health():
    model = nn.Sequential(nn.Linear(64, 10))
    pixels, digits = load_digits(return_X_y=True)
    inputs, labels = torch.tensor(pixels / 16).float(), torch.tensor(digits)
    assert METHODS.get("metricopt-mirror") is MirrorMetricOpt
    found = finetune(
        model,
        train=(inputs[:300], labels[:300]),
        observe=(inputs[300:700], labels[300:700]),
        loss=nn.CrossEntropyLoss(),
        metric="f1_macro",
        method=MirrorMetricOpt(
            recipe=Recipe(rollout=Rollout(10, 3)),
            geometry=MirrorRecipe(tasks=2, block=2),
        ),
        queries=60,
        no_harm=False,
        steps=10,
    )
    assert found.spent.queries <= 60
    assert found.phi.shape == (36,)


def test_an_untrained_geometry_leaves_the_run_as_it_is():
    known = value_function_of_quadratic()
    geometry = LearnedGeometry(phi_geometry(quarters(SIZE), seeded()))
    paths = []
    for settings in ((), (geometry,)):
        factory = guided_optimizer(known, "sgd", 6, 0.4, seeded(3), *settings)
        start = starts(SIZE, 3, 0.1, seeded(2))
        paths.append(run(QuadraticTask(), factory, start, 6, seeded(4))[0])
    assert torch.equal(*paths)
    assert geometry.notes()["mirror_cosine"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window"),
        ({"tasks": -1}, "tasks"),
        ({"block": 2.5}, "block"),
        ({"rate": 0.0}, "rate"),
        ({"clip": 0.0}, "clip"),
        ({"metric_weight": -1.0}, "metric_weight"),
    ],
)
def test_a_recipe_out_of_range_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        MirrorRecipe(**settings)
