"""The value function of statistics: what it identifies, and what it says of itself."""

import pytest
import torch

from metricopt.metrics.counted import F1, WorstClassError
from metricopt.on_outputs.coordinates import Pace, descend
from metricopt.on_outputs.statistics_value import StatisticsValueFunction, _Explanations
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import Family
from tests.metricopt.drawn import seeded

N, CLASSES = 400, 5
STATISTICS = ConfusionStatistics()


def situations(rows, classes=CLASSES, seed=0):
    """Outputs [rows, N, C] of one network with its outputs shifted, and targets."""
    targets = torch.randint(max(2, classes), (N,), generator=seeded(9))
    outputs = torch.randn(N, classes, generator=seeded(10))
    if classes > 1:
        outputs += 2 * torch.nn.functional.one_hot(targets, classes)
    else:
        outputs += 2 * targets[:, None] - 1
    shifts = 0.5 * torch.randn(rows, 1, classes, generator=seeded(seed))
    shifts[0] = 0
    return outputs + shifts, targets


def fitted(cost, classes, points):
    outputs, targets = situations(points + 50, classes)
    groups = STATISTICS.exact(outputs, targets)
    costs = cost(outputs, targets).double()
    known = {name: values[:points] for name, values in groups.items()}
    held_out = {name: values[points:] for name, values in groups.items()}
    value = StatisticsValueFunction(known, costs[:points], STATISTICS.families(known))
    return value, known, costs[:points], held_out, costs[points:]


def error_rate(outputs, targets):
    return (outputs.argmax(-1) != targets).float().mean(1)


def weighted_cost(outputs, targets):
    """Cost of a matrix that no statistic was made for."""
    prices = torch.rand(CLASSES, CLASSES, generator=seeded(3))
    return prices[targets, outputs.argmax(-1)].mean(1)


def worst_class(outputs, targets):
    return WorstClassError().values(outputs, targets)


def one_minus_f(outputs, targets):
    return 1 - F1().values(outputs, targets)


def test_what_no_query_moved_leaves_predictions_for_other_examples_sure():
    value, known, costs, held_out, _ = fitted(worst_class, CLASSES, 10)
    families = [Family(("still", *known), STATISTICS.near)]
    still = torch.full((10, 2), 0.3)
    value = StatisticsValueFunction({"still": still, **known}, costs, families)
    moved = {"still": torch.full((50, 2), 0.4), **held_out}
    assert value.predict(moved)[1].max() < 3 * costs.std()


@pytest.mark.parametrize(
    ("cost", "classes", "points", "error"),
    [
        (one_minus_f, 1, 8, 0.02),
        (error_rate, CLASSES, 8, 0.06),
        (weighted_cost, CLASSES, 30, 0.001),
        (worst_class, CLASSES, 10, 0.001),
    ],
)
def test_metrics_of_decisions_are_identified(cost, classes, points, error):
    value, _, _, held_out, costs = fitted(cost, classes, points)
    mean, deviation = value.predict(held_out)
    # Relative to how far the metric moves.
    assert (mean - costs).abs().mean() < error * costs.std()
    assert (deviation < 0.5 * costs.std()).all()


def all_kernels(settings, index):
    """Some settings, with every kernel, whatever its weight."""
    names = ("linear", "family", "near", "curved", "length", "noise")
    return settings._replace(**{name: getattr(settings, name)[index] for name in names})


FAMILIES = [Family((name,), near=name) for name in ("first", "second", "third")]
"""Each of one group, which may explain a metric linearly or by distances."""


def linear(groups):
    return groups["first"].sum(1)


def curved(groups):
    return groups["second"].square().sum(1)


@pytest.mark.parametrize(
    ("cost", "points", "straight", "bent"),
    [
        (linear, 30, {"first"}, set()),
        # Few points may be explained by what is like the second group, too.
        (curved, 6, {"second", "third"}, {"second", "third"}),
    ],
)
def test_kernels_without_a_weight_say_nothing(
    cost, points, straight, bent, monkeypatch
):
    drawn = {
        family.near: torch.randn(points, 2, generator=seeded(seed)).double()
        for seed, family in enumerate(FAMILIES)
    }
    drawn["third"] = drawn["second"] + 0.3 * drawn["third"]
    lean = StatisticsValueFunction(drawn, cost(drawn), FAMILIES)
    monkeypatch.setattr(_Explanations, "at", all_kernels)
    whole = StatisticsValueFunction(drawn, cost(drawn), FAMILIES)
    assert bent <= set(lean._kept.nears) < set(whole._kept.nears)
    assert straight <= set(lean._kept.groups)
    torch.testing.assert_close(lean.shares, whole.shares)
    found = []
    for value in (lean, whole):
        others = {
            name: torch.randn(9, 2, generator=seeded(7)).double().requires_grad_()
            for name in drawn
        }
        mean, deviation = value.predict(others)
        (mean + deviation).sum().backward()
        slopes = [g.grad if g.grad is not None else 0 * g for g in others.values()]
        found.append(torch.cat([mean, deviation, *(s.flatten() for s in slopes)]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_a_descent_stays_where_the_cost_has_no_slope():
    start = torch.randn(2, 3, generator=seeded())
    alike, scale = lambda phi: torch.ones(len(phi)), torch.ones(3)
    flat = descend(alike, start, scale, Pace(rate=1, steps=3))
    assert all(torch.equal(phi, start) for phi in flat)


def test_it_passes_through_what_was_observed():
    value, known, costs, held_out, _ = fitted(weighted_cost, CLASSES, 12)
    mean, deviation = value.predict(known)
    torch.testing.assert_close(mean, costs, rtol=0, atol=1e-3)
    assert deviation.mean() < value.predict(held_out)[1].mean()


def test_deviations_are_honest_where_it_knows_little():
    value, _, _, held_out, costs = fitted(weighted_cost, CLASSES, 10)
    mean, deviation = value.predict(held_out)
    scores = (mean - costs) / deviation
    assert 0.3 < scores.square().mean().sqrt() < 3


def test_what_is_no_function_of_the_statistics_is_not_identified():
    noise = torch.rand(500, generator=seeded(5)).double()
    value, _, _, held_out, costs = fitted(lambda o, _: noise[: len(o)], CLASSES, 20)
    mean, _ = value.predict(held_out)
    assert (mean - costs).abs().mean() > 0.5 * costs.std()
    # The noise is no part of the deviation; it must not be taken for signal either.
    assert (mean - costs.mean()).abs().mean() < 0.7 * costs.std()


def test_a_constant_metric_is_predicted_as_constant():
    value, _, _, held_out, _ = fitted(
        lambda o, _: torch.full((len(o),), 0.25), CLASSES, 6
    )
    mean, deviation = value.predict(held_out)
    torch.testing.assert_close(mean, torch.full_like(mean, 0.25), rtol=0, atol=1e-6)
    assert torch.isfinite(deviation).all()


def test_predictions_are_differentiable():
    value, _, _, held_out, _ = fitted(weighted_cost, CLASSES, 10)
    names = sorted(held_out)
    inputs = [held_out[name][:3].clone().requires_grad_() for name in names]

    def predict(*values):
        return value.predict(dict(zip(names, values, strict=True)))

    assert torch.autograd.gradcheck(predict, inputs, atol=1e-4, rtol=1e-3)
