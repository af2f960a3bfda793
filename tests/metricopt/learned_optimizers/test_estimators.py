"""Eq. (7): both estimators on losses whose smoothed gradient is known."""

import pytest
import torch

from metricopt.learned_optimizers.estimators import (
    evolution_strategies,
    merge,
    reparameterised,
    sample_variance,
)
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded

DEVIATION = 0.1
CASES = list(load_golden("learned_optimizer_objective"))


def draws(loss, weights, count):
    """Estimates by both, and single gradients, of a loss [n, W] -> [n]."""
    weights = torch.tensor(weights, dtype=torch.float64)
    normal = torch.randn(count, len(weights), generator=seeded(), dtype=torch.float64)
    noise = DEVIATION * normal
    values, gradients = [], []
    for sign in (1, -1):
        at = (weights + sign * noise).requires_grad_()
        value = loss(at)
        values.append(value.detach())
        gradients.append(torch.autograd.grad(value.sum(), at)[0])
    strategies = evolution_strategies(*values, noise, DEVIATION)
    return strategies, reparameterised(*gradients), gradients[0]


def test_b3_a_quadratic():
    strategies, pairs, single = draws(
        lambda w: (w**2 * torch.tensor([1.0, 4.0])).sum(1) / 2, [1.0, -1.0], 200_000
    )
    assert strategies.mean(0).tolist() == pytest.approx([1.0, -4.0], abs=0.04)
    assert sample_variance(strategies).tolist() == pytest.approx([18, 33], rel=0.02)
    assert sample_variance(single).tolist() == pytest.approx([0.01, 0.16], rel=0.02)
    assert sample_variance(pairs).max().item() < 1e-28
    torch.testing.assert_close(
        pairs, torch.tensor([[1.0, -4.0]]).double().expand_as(pairs)
    )
    exact = torch.tensor([18.0, 33.0]), torch.tensor([0.01, 0.16])
    share = merge(torch.zeros(2), torch.zeros(2), exact).share
    assert share.tolist() == pytest.approx([0.99944, 0.99517], abs=1e-5)


def test_b4_a_rough_loss():
    strategies, _, single = draws(
        lambda w: (w**2 / 2 + (1000 * w).cos()).sum(1), [1.0], 400_000
    )
    assert strategies.mean().item() == pytest.approx(1.0, abs=0.04)
    variances = sample_variance(strategies), sample_variance(single)
    assert variances[0].item() == pytest.approx(36.2, rel=0.02)
    assert variances[1].item() == pytest.approx(5.0e5, rel=0.02)
    assert merge(strategies.mean(0), single.mean(0), variances).share.item() < 1e-4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case):
    hessian, linear = case.inputs["hessian"], case.inputs["linear"]
    deviation = case.settings["sigma"]
    noise = deviation * case.inputs["noise"]

    def loss(w):
        return ((w @ hessian) * w).sum(1) / 2 + w @ linear

    at = [case.inputs["theta"] + sign * noise for sign in (1, -1)]
    strategies = evolution_strategies(*map(loss, at), noise, deviation)
    pairs = reparameterised(*(w @ hessian + linear for w in at))
    assert_golden(strategies, case.expected["es_per_draw"], case.tolerance)
    assert_golden(pairs, case.expected["reparam_per_draw"], case.tolerance)
    variances = sample_variance(strategies), sample_variance(pairs)
    merged = merge(strategies.mean(0), pairs.mean(0), variances)
    assert_golden(merged.gradient, case.expected["merged_gradient"], case.tolerance)


def test_equal_variances_weigh_the_same_and_none_divides_by_nothing():
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0])
    for variance in (torch.ones(2), torch.zeros(2)):
        merged = merge(one, other, (variance, variance))
        assert merged.gradient.tolist() == [2.0, 4.0]
        assert merged.share.tolist() == [0.5, 0.5]
