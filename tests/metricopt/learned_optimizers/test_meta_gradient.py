"""Meta-gradients: cut and whole, through steps and by values, and merged."""

import math

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from metricopt.learned_optimizers import MetricOptMLP, Objective, OptimizerTraining
from metricopt.learned_optimizers.estimators import evolution_strategies
from metricopt.learned_optimizers.meta_gradient import MetaGradient
from metricopt.learned_optimizers.unroll import Unroll
from tests.metricopt.drawn import seeded
from tests.metricopt.learned_optimizers.quadratics import (
    Constant,
    Descent,
    Line,
    Quadratics,
)

SUM = Objective(metric_weight=0.0, loss_term="sum")
TRUE, CUT = 8.0, 5.6


def settings(estimator, **changes):
    return OptimizerTraining(estimator=estimator, **{"objective": SUM} | changes)


def windows(optimizer, tasks, asked, length=4):
    """The meta-gradient of every window of one batch of runs."""
    gradient = MetaGradient(optimizer, asked)
    gradient.begin(tasks, length, seeded(1))
    return torch.stack([gradient.window(steps) for steps in asked.windows(length)])


@pytest.mark.parametrize(("window", "expected"), [(None, TRUE), (2, CUT)])
def test_b5_through_steps(window, expected):
    asked = settings("through-steps", deviation=0.0, window=window)
    found = windows(Constant(-0.2), Line(3), asked).sum()
    assert found.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("estimator", "count"), [("persistent", 100_000), ("strategies", 100_000)]
)
def test_b5_without_bias_from_cutting(estimator, count):
    # Four pairs on each of 100,000 copies of the task: 10.1 / sqrt(400,000) = 0.016.
    asked = settings(estimator, deviation=0.1, window=2)
    found = windows(Constant(-0.2), Line(count), asked).sum()
    assert found.item() == pytest.approx(TRUE, abs=0.05)


def test_b5_strategies_that_forget_earlier_noise_are_biased():
    optimizer, total = Constant(-0.2), 0.0
    for before in (0, 2):
        noise = 0.1 * torch.randn(
            1, 100_000, 1, generator=seeded(), dtype=torch.float64
        )
        runs = Unroll(optimizer, Line(100_000), copies=2)
        centre = torch.full_like(noise, -0.2)
        runs.advance(before, torch.cat([centre, centre]))
        losses = runs.advance(2, torch.cat([centre + noise, centre - noise])).losses
        plus, minus = losses[before + 1 :].sum(0).chunk(2)
        total += evolution_strategies(plus, minus, noise, 0.1).mean().item()
    assert total == pytest.approx(CUT, abs=0.05)


def test_b10_equal_members_of_a_pair_have_equal_values():
    family = Quadratics(range(2), dtype=torch.float64)
    optimizer = MetricOptMLP(8).double()
    centre = parameters_to_vector(optimizer.parameters()).detach()
    gaps = []
    for deviation in (1e-3, 1e-5, 0.0):
        noise = deviation * torch.randn(
            1, 2, len(centre), generator=seeded(), dtype=torch.float64
        )
        weights = torch.cat([centre + noise, centre - noise])
        found = Unroll(optimizer, family, copies=2).advance(8, weights)
        plus, minus = found.losses.chunk(2, dim=1)
        gaps.append((plus - minus).abs().max().item())
    assert gaps[0] > 50 * gaps[1] > 0
    assert gaps[2] == 0


def test_all_estimators_agree_on_a_learned_rate():
    # A rate that would follow the largest curvature: the objective is smooth in it.
    family = Quadratics(range(40), dtype=torch.float64)
    objective = Objective(metric_weight=2.0, sharpness=3.0)

    def mean(estimator, **changes):
        asked = settings(estimator, pairs=100, objective=objective, **changes)
        gradient = MetaGradient(Descent(0.5), asked)
        for _ in range(2):  # merged needs variances of before
            gradient.begin(family, 6, seeded(2))
            found = gradient.window(6)
        return found.item(), gradient.share

    exact, _ = mean("through-steps", deviation=0.0)
    assert mean("through-steps", deviation=1e-3)[0] == pytest.approx(exact, rel=1e-3)
    assert mean("strategies", deviation=1e-3)[0] == pytest.approx(exact, rel=0.1)
    merged, share = mean("merged", deviation=1e-3)
    assert merged == pytest.approx(exact, rel=0.05)
    assert 0 < share <= 1
    # Gradients as constants: less variance, and a bias.
    first, _ = mean("through-steps", deviation=0.0, order="first")
    assert first != pytest.approx(exact, rel=0.01)


class Broken(Descent):
    """Values are finite, derivatives are not."""

    def _move(self, seen, state):
        none = (self.rate - self.rate).abs().sqrt()
        return -self.rate * seen.gradient + none, state


def test_estimates_through_steps_that_are_not_finite_do_not_count():
    family = Quadratics(range(4), dtype=torch.float64)
    for kind, expected in ((Broken, 0.0), (Descent, 0.5)):
        gradient = MetaGradient(kind(0.5), settings("merged"))
        for _ in range(2):
            gradient.begin(family, 3, seeded(2))
            found = gradient.window(3)
        assert found.isfinite().all()
        assert gradient.share >= expected
    assert math.isnan(
        windows(Broken(0.5), family, settings("through-steps"), 3).sum().item()
    )
    alone = windows(Broken(0.5), family, settings("strategies"), 3)
    merged = windows(Broken(0.5), family, settings("merged"), 3)
    assert torch.equal(merged, alone)
