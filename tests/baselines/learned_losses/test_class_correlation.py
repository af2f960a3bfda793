"""The loss of ALA and its statistics against golden vectors."""

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
    loss = correlation_loss(log_p, labels, phi)
    loss.backward()
    assert_golden(loss, case.expected["loss"], case.tolerance)
    assert_golden(logits.grad, case.expected["grad_logits"], case.tolerance)
    found = confusion(log_p.detach(), labels)
    assert_golden(found, case.expected["confusion"], case.tolerance)
    costs = case.inputs["metric_sequence"]
    ages = torch.arange(len(costs)).flip(0)
    total = discounted(costs, ages, case.settings["gamma"])
    assert_golden(total, case.expected["discounted_metric"], case.tolerance)


def test_with_the_identity_and_no_sigmoid_it_is_cross_entropy():
    logits, labels = torch.randn(9, 4), torch.arange(9) % 4
    log_p = log_probabilities(logits)
    plain = correlation_loss(log_p, labels, torch.eye(4), sigmoid=False)
    assert torch.allclose(plain, torch.nn.functional.cross_entropy(logits, labels))
    one, binary = torch.randn(9, 1), labels % 2
    plain = correlation_loss(
        log_probabilities(one), binary, torch.eye(2), sigmoid=False
    )
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        one[:, 0], binary.float()
    )
    assert torch.allclose(plain, wanted)


def test_a_sure_example_has_the_slope_of_cross_entropy():
    logits = torch.tensor([[9.0, 0.0]], dtype=torch.float64, requires_grad=True)
    label = torch.tensor([0])
    loss = SLOPE * correlation_loss(log_probabilities(logits), label, torch.eye(2))
    (ours,) = torch.autograd.grad(loss, logits)
    (plain,) = torch.autograd.grad(
        torch.nn.functional.cross_entropy(logits, label), logits
    )
    assert torch.allclose(ours, plain, rtol=1e-3)


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
