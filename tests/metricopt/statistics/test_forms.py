"""Weights, and the smooth form beside the exact one, of statistics of examples."""

import pytest
import torch

from metricopt.statistics.probabilities import ProbabilityStatistics
from metricopt.statistics.ranking import RankingStatistics
from tests.metricopt.drawn import seeded
from tests.metricopt.statistics.statistic_cases import situations

RANKING, PROBABILITIES = RankingStatistics(), ProbabilityStatistics()
CASES = [(RANKING, 1), (RANKING, 4), (PROBABILITIES, 1), (PROBABILITIES, 5)]


@pytest.mark.parametrize(("kind", "classes"), CASES)
@pytest.mark.parametrize(("form", "near"), [("exact", 1e-6), ("smooth", 1e-4)])
def test_weights_are_repetitions(kind, classes, form, near):
    outputs, targets = situations(classes, examples=60)
    counts = torch.randint(0, 3, (60,), generator=seeded(4))
    repeated = torch.arange(60).repeat_interleave(counts)
    one = getattr(kind, form)(outputs, targets, counts.float().expand(3, -1))
    other = getattr(kind, form)(outputs[:, repeated], targets[repeated])
    for name, values in one.items():
        near = near if kind is RANKING else 1e-5
        torch.testing.assert_close(values, other[name], rtol=0, atol=near)


@pytest.mark.parametrize(("kind", "classes"), CASES)
def test_smooth_is_near_exact_and_differentiable(kind, classes):
    outputs, targets = situations(classes)
    outputs.requires_grad_()
    smooth, exact = kind.smooth(outputs, targets), kind.exact(outputs, targets)
    for name, values in smooth.items():
        near = 0.25 if kind is RANKING else 0.12
        assert (values - exact[name]).abs().max() < near, name
    sum(values.sum() for values in smooth.values()).backward()
    assert torch.isfinite(outputs.grad).all() and outputs.grad.abs().sum() > 0
