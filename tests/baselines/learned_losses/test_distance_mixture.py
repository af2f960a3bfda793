"""Eq. 9 of ALA worked by hand, its functions, and its slopes."""

import math

import pytest
import torch

from baselines.learned_losses.distance_mixture import (
    DECREASING,
    EACH,
    INCREASING,
    distance_mixture,
    start,
    terms,
)

SETS = ("shapes", "powers")


def test_the_default_is_squared_distance_and_half_its_inverse():
    """1.2^2 + 0.5 / 0.8 = 1.44 + 0.625."""
    found = distance_mixture(torch.tensor([1.2]), torch.tensor([0.8]), start())
    assert found.tolist() == pytest.approx([2.065])


def test_all_functions_of_the_first_set_by_hand():
    """d+ = 1, d- = 0.5, with weights 0.1 to 1."""
    positive = [1.0, 1.0, 0.5, math.log(2), (math.e - 1) / 3.2]
    negative = [1.0, -math.log(0.25), math.exp(0.5) / 2, 1.5, 1.125]
    phi = torch.arange(1, 11, dtype=torch.float64) / 10
    expected = sum(
        weight * value for weight, value in zip(phi, positive + negative, strict=True)
    )
    one, half = torch.ones(1).double(), torch.full((1,), 0.5).double()
    assert terms(one, half, "shapes")[0].tolist() == pytest.approx(positive + negative)
    assert distance_mixture(one, half, phi).item() == pytest.approx(float(expected))


def test_all_functions_of_the_second_set_by_hand():
    """d+ = 2, d- = 1."""
    positive = [4.0, 2.0, 2**1.5, 4.0, 4.0]
    negative = [0.5, 1.0, 0.5, 0.25, 1.5]
    found = terms(torch.tensor([2.0]), torch.tensor([1.0]), "powers")[0]
    assert found.tolist() == pytest.approx(positive + negative)


@pytest.mark.parametrize("functions", SETS)
def test_functions_rise_with_positive_and_fall_with_negative_distances(functions):
    distances = torch.linspace(0.1, 2.0, 50, dtype=torch.float64)
    values = terms(distances, distances, functions)
    steps = values.diff(dim=0)
    assert (steps[:, :EACH] > 0).all()
    assert (steps[:, EACH:] < 0).all()
    assert (values >= 0).all()
    assert values.max() <= 5
    assert len(INCREASING[functions]) == len(DECREASING[functions]) == EACH


def test_negatives_that_coincide_have_a_finite_loss_and_no_slope():
    negative = torch.tensor([0.0, 0.05], requires_grad=True)
    loss = distance_mixture(torch.zeros(2), negative, torch.ones(10))
    assert loss[0] == loss[1] < 20
    loss.sum().backward()
    assert negative.grad.tolist() == [0, 0]


@pytest.mark.parametrize("functions", SETS)
def test_slopes_are_those_of_finite_differences(functions):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(3, 6, generator=generator, dtype=torch.float64)
    positive = (0.2 + 1.7 * drawn[0]).requires_grad_()
    negative = (0.2 + 1.7 * drawn[1]).requires_grad_()
    phi = torch.rand(10, generator=generator).double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: distance_mixture(*given, functions), (positive, negative, phi)
    )
