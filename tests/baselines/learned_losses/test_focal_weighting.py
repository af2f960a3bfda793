"""Eq. 10 of ALA worked by hand, against golden vectors, and its slopes."""

import math

import pytest
import torch

from baselines.learned_losses.adaptive_distances import distances_of
from baselines.learned_losses.focal_weighting import focal_weighting
from tests.golden import assert_golden, load_golden

CASES = [case for case in load_golden("ala") if "embeddings" in case.inputs]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case):
    embeddings = case.inputs["embeddings"].clone().requires_grad_()
    labels = case.inputs["labels"]
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    same = labels[:, None] == labels
    others = same & ~torch.eye(len(labels), dtype=torch.bool)
    phi = torch.tensor([case.settings["phi1"], case.settings["phi2"]])
    loss = focal_weighting(distances_of(unit, unit), others, ~same, phi.double()).mean()
    loss.backward()
    assert_golden(loss, case.expected["loss"], case.tolerance)
    assert_golden(embeddings.grad, case.expected["grad_embeddings"], case.tolerance)


def test_an_anchor_with_two_positives_and_one_negative_by_hand():
    distances = torch.tensor([[0.0, 0.5, 1.5, 0.8]])
    positives = torch.tensor([[False, True, True, False]])
    negatives = torch.tensor([[False, False, False, True]])
    found = focal_weighting(distances, positives, negatives, torch.tensor([2.0, 0.5]))
    near = math.log(1 + math.exp(2 * -0.5) + math.exp(2 * 0.5)) / 2
    far = math.log(1 + math.exp(-0.5 * -0.2)) / 0.5
    assert found.item() == pytest.approx(near + far)


def test_sharp_maxima_are_hinges():
    """log(1 + exp(s x)) / s nears max(0, x)."""
    distances = torch.tensor([[1.3, 0.6]], dtype=torch.float64)
    own = torch.tensor([[True, False]])
    found = focal_weighting(distances, own, ~own, torch.full((2,), 200.0).double())
    assert found.item() == pytest.approx(0.3 + 0.4, abs=1e-3)


def test_no_pairs_cost_nothing_and_have_no_slope():
    distances = torch.rand(3, 4, requires_grad=True)
    none = torch.zeros(3, 4, dtype=torch.bool)
    loss = focal_weighting(distances, none, none, torch.ones(2))
    loss.sum().backward()
    assert loss.tolist() == [0, 0, 0]
    assert not distances.grad.any()


def test_slopes_are_those_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    distances = 2 * torch.rand(4, 5, generator=generator, dtype=torch.float64)
    positives = torch.rand(4, 5, generator=generator) < 0.4
    phi = torch.tensor([0.7, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda d, sharpness: focal_weighting(d, positives, ~positives, sharpness),
        (distances.requires_grad_(), phi.requires_grad_()),
    )
