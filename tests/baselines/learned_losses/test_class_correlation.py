"""The loss of ALA and its statistics against golden vectors."""

import math

import pytest
import torch

from baselines.learned_losses.ala_controller import discounted
from baselines.learned_losses.class_correlation import (
    SLOPE,
    confusion,
    correlation_loss,
    log_probabilities,
)
from tests.golden import assert_golden, load_golden

CASES = [case for case in load_golden("ala") if "phi" in case.inputs]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case):
    logits = case.inputs["logits"].clone().requires_grad_()
    labels, phi = case.inputs["labels"], case.inputs["phi"]
    log_p = log_probabilities(logits)
    loss = correlation_loss(log_p, labels, phi, literal=True) / SLOPE
    loss.backward()
    assert_golden(loss, case.expected["loss"], case.tolerance)
    assert_golden(logits.grad, case.expected["grad_logits"], case.tolerance)
    found = confusion(log_p.detach(), labels)
    assert_golden(found, case.expected["confusion"], case.tolerance)
    costs = case.inputs["metric_sequence"]
    ages = torch.arange(len(costs)).flip(0)
    total = discounted(costs, ages, case.settings["gamma"])
    assert_golden(total, case.expected["discounted_metric"], case.tolerance)


def test_with_the_identity_it_is_cross_entropy():
    logits, labels = torch.randn(9, 4), torch.arange(9) % 4
    log_p = log_probabilities(logits)
    plain = correlation_loss(log_p, labels, torch.eye(4))
    assert torch.allclose(plain, torch.nn.functional.cross_entropy(logits, labels))
    one, binary = torch.randn(9, 1), labels % 2
    plain = correlation_loss(
        log_probabilities(one),
        binary,
        torch.eye(2),
    )
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        one[:, 0], binary.float()
    )
    assert torch.allclose(plain, wanted)


def test_parameters_ask_for_more_or_less_of_a_class():
    p, label = torch.tensor([[0.5, 0.2, 0.3]]), torch.tensor([0])
    phi = torch.tensor([[1.0, 0.4, -0.6], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = correlation_loss(p.log(), label, phi)
    wanted = -(math.log(0.5) + 0.4 / 2 * math.log(0.2) + 0.6 / 2 * math.log(0.7))
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_no_parameter_pays_for_a_class_without_the_true_one():
    """Eq. 6 as printed does: the slope of the true class vanishes."""
    logits = torch.tensor([[0.0, 0.0, -60.0]], requires_grad=True)
    log_p, label = log_probabilities(logits), torch.tensor([0])
    phi = torch.eye(3) - 0.5 * (1 - torch.eye(3))
    slopes = [
        torch.autograd.grad(
            correlation_loss(log_p, label, phi, literal=literal),
            logits,
            retain_graph=True,
        )[0][0, 0].item()
        for literal in (False, True)
    ]
    assert slopes[0] < -0.5
    assert abs(slopes[1]) < 1e-6


def test_a_sure_example_has_a_finite_loss_under_a_negative_parameter():
    sure = log_probabilities(torch.tensor([[99.0, 0.0]])).requires_grad_()
    loss = correlation_loss(sure, torch.tensor([0]), -torch.eye(2))
    loss.backward()
    assert loss.isfinite()
    assert sure.grad.isfinite().all()


def test_networks_are_computed_apart():
    logits, labels = torch.randn(2, 9, 3), torch.arange(9) % 3
    phi = torch.stack([torch.eye(3), torch.ones(3, 3)])
    both = correlation_loss(log_probabilities(logits), labels, phi)
    for k in range(2):
        alone = correlation_loss(log_probabilities(logits[k]), labels, phi[k])
        assert torch.allclose(both[k], alone)


def test_a_class_without_examples_has_no_confusion():
    found = confusion(
        torch.randn(2, 5, 3).log_softmax(-1), torch.tensor([0, 0, 2, 2, 2])
    )
    assert found[:, 1].isnan().all()
    assert found[:, [0, 2]].isfinite().all()
