"""Guided descent: steps in units of the spread, falling to zero, within reach."""

import pytest
import torch

from metricopt.algorithm1.recipe import RECIPE, MetaTrained
from metricopt.algorithm1.step_choice import guided_optimizer
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.tasks.descent import run, starts
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask


class Slope(ValueFunction):
    """Predicts the sum of the coordinates."""

    def forward(self, phi):
        return phi.sum(1)


def trained(*, spread=2.0, reach=100.0):
    return MetaTrained(Slope(6).eval(), RECIPE, 0, spread, reach)


def path_of(optimizer, *, steps=4, **settings):
    task, generator = QuadraticTask(), seeded(0)
    factory = guided_optimizer(trained(**settings), optimizer, steps, 0.5, generator)
    start = starts(task.size, 3, 0.1, generator)
    return run(task, factory, start, steps, generator)[0]


def test_sgd_takes_steps_of_the_length_asked_for_that_fall_to_zero():
    path = path_of("sgd")
    lengths = path.diff(dim=1).norm(dim=2)
    # 0.5 times the spread of 2, then three quarters of it, and so on.
    expected = torch.tensor([1.0, 0.75, 0.5, 0.25]).expand(3, 4)
    torch.testing.assert_close(lengths, expected)


def test_adam_takes_first_steps_of_about_that_length():
    first = path_of("adam").diff(dim=1).norm(dim=2)[:, 0]
    torch.testing.assert_close(first, torch.ones(3), rtol=1e-3, atol=0.0)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_it_goes_down_the_value_function_and_stays_within_reach(optimizer):
    path = path_of(optimizer, steps=30)
    value = path.sum(2)
    assert (value[:, -1] < value[:, 0] - 1).all()
    near = path_of(optimizer, steps=30, reach=0.7)
    assert near[:, 1:].norm(dim=2).max() <= 0.7 + 1e-5
