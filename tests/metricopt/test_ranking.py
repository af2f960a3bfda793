"""Spearman's rank correlation, from its definition."""

import math

import pytest
import torch

from metricopt.ranking import rank_correlation
from tests.metricopt.drawn import seeded


def mean_ranks(values):
    """Ranks from 1, equal values sharing the mean of theirs."""
    return [
        sum(other < value for other in values)
        + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def pearson(first, second):
    a, b = (torch.tensor(part, dtype=torch.float64) for part in (first, second))
    a, b = a - a.mean(), b - b.mean()
    return ((a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()).item()


@pytest.mark.parametrize("levels", [3, 1_000])
def test_it_is_the_correlation_of_ranks(levels):
    generator = seeded(levels)
    first, second = torch.randint(levels, (2, 30), generator=generator).float()
    second = second + first
    expected = pearson(mean_ranks(first.tolist()), mean_ranks(second.tolist()))
    assert rank_correlation(first, second) == pytest.approx(expected)
    found = rank_correlation(first.view(5, 6), second.double())
    assert found == pytest.approx(expected)


def test_only_the_order_counts():
    values = torch.randn(20, generator=seeded(0))
    assert rank_correlation(values, values.exp()) == pytest.approx(1.0)
    assert rank_correlation(values, -(values**3)) == pytest.approx(-1.0)
    assert rank_correlation(values.clone().requires_grad_(), values) == pytest.approx(1)


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0], [2.0]), ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ([1.0, 2.0], [5.0, 5.0])],
)
def test_what_is_constant_has_none(first, second):
    assert math.isnan(rank_correlation(torch.tensor(first), torch.tensor(second)))
