"""Eq. (6) against worked numbers and a loop."""

import math

import pytest
import torch

from metricopt.algorithm1.optimizer_objective import (
    loss_term,
    metric_term,
    optimizer_objective,
)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_metric_term_is_the_worked_number():
    found = metric_term(numbers(0.5, 0.4, 0.45, 0.3), beta=1.5)
    assert found.item() == pytest.approx(0.592383, abs=1e-6)
    terms = [
        metric_term(numbers(best, now), beta=1.5).item()
        for best, now in ((0.5, 0.4), (0.4, 0.45), (0.4, 0.3))
    ]
    assert terms == pytest.approx([0.523123, 0.779949, 0.474077], abs=1e-6)


def test_a_metric_that_does_not_change_counts_log_2():
    assert metric_term(torch.full((5, 3), 0.2), beta=25).item() == pytest.approx(
        math.log(2)
    )


def test_a_small_or_negative_metric_divides_by_no_less_than_a_thousandth():
    found = metric_term(numbers(0.001, -0.001), beta=2.0)
    assert found.item() == pytest.approx(math.log1p(math.exp(2 * -0.002 / 0.001)))


def test_the_loss_term_is_the_worked_number():
    found = loss_term(numbers(1, 0.1, 0.01))
    assert found.item() == pytest.approx(-3.4539, abs=1e-4)


def test_the_objective_is_the_mean_over_rows_of_a_loop():
    drawn = torch.rand(2, 6, 4, generator=torch.Generator().manual_seed(0)).double()
    metrics, losses = drawn[0] + 0.1, drawn[1] + 0.1
    expected = 0.0
    for row in range(4):
        for step in range(1, 6):
            now, best = metrics[step, row], metrics[:step, row].min()
            expected += 7 * math.log1p(math.exp(3 * (now - best) / now)) / 20
            expected += math.log(losses[step, row] / losses[0, row]) / 20
    found = optimizer_objective(metrics, losses, beta=3, weight=7)
    assert found.item() == pytest.approx(expected, abs=1e-6)
