"""The AUCPR loss against golden vectors, a loop over anchors, and as a saddle point."""

import math

import pytest
import torch

from baselines.losses.aucpr import AUCPRLoss
from metricopt.errors import ConfigError
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("aucpr_eban"))
PENALTIES = {
    "logistic": lambda z: math.log1p(math.exp(z)),
    "hinge": lambda z: max(0.0, 1 + z),
}
SURROGATES = {"xent": "logistic", "hinge": "hinge"}


def loss_of(settings, inputs):
    """The loss in the state of a golden case, in double precision."""
    classes, anchors = inputs["biases"].shape
    assert settings["precision_range"] == [0.0, 1.0]
    assert anchors == settings["num_anchors"]
    loss = AUCPRLoss(
        classes,
        anchors=anchors,
        surrogate=SURROGATES[settings["surrogate"]],
        dual_rate=settings["dual_rate_factor"],
    ).double()
    loss.multipliers.data = inputs["lambdas"]
    loss.biases.data = inputs["biases"]
    loss.priors = inputs["label_priors"]
    return loss


def example(classes, examples=20):
    generator = torch.Generator().manual_seed(classes)
    outputs = torch.randn(examples, classes, generator=generator, dtype=torch.float64)
    return outputs, torch.randint(max(classes, 2), (examples,), generator=generator)


def trained(loss):
    """The loss with multipliers and biases away from their start."""
    generator = torch.Generator().manual_seed(7)
    loss = loss.double()
    for parameter in loss.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)
    return loss


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    inputs, expected, tolerance = case.inputs, case.expected, case.tolerance
    loss, logits = loss_of(case.settings, inputs), inputs["logits"].requires_grad_()
    # What is left for positives that are surely right has no example weight.
    certain = torch.full_like(logits, 1e9)
    constant = loss.element_losses(certain, torch.ones_like(logits))
    elements = loss.element_losses(logits, inputs["labels"])
    elements = inputs["weights"] * (elements - constant) + constant
    elements.mean().backward()
    assert_golden(elements.detach(), expected["loss_elements"], tolerance)
    assert_golden(elements.mean().detach(), expected["loss_mean"], tolerance)
    assert_golden(logits.grad, expected["grad_logits"], tolerance)
    assert_golden(loss.biases.grad, expected["grad_biases"], tolerance)
    assert_golden(loss.multipliers.grad, expected["grad_lambdas_reversed"], tolerance)


@pytest.mark.parametrize("surrogate", PENALTIES)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_equals_the_loop_over_anchors(classes, surrogate):
    outputs, targets = example(classes)
    priors = [0.15 * (label + 1) for label in range(classes)]
    loss = trained(AUCPRLoss(classes, anchors=7, priors=priors, surrogate=surrogate))
    penalty, total = PENALTIES[surrogate], 0.0
    for row, target in zip(outputs.tolist(), targets.tolist(), strict=True):
        for column in range(classes):
            positive = target == (1 if classes == 1 else column)
            for k in range(1, 8):
                precision = k / 8
                weight = abs(loss.multipliers[column, k - 1].item())
                z = row[column] + loss.biases[column, k - 1].item()
                if positive:
                    total += (1 + weight * (1 - precision)) * penalty(-z) / 7
                else:
                    total += weight * precision * penalty(z) / 7
                total -= weight * (1 - precision) * priors[column] * penalty(0) / 7
    expected = total / outputs.numel()
    assert loss(outputs, targets).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("classes", "prior"), [(1, 0.5), (2, 0.5), (4, 0.25)])
def test_classes_are_equally_frequent_unless_told(classes, prior):
    assert AUCPRLoss(classes).priors.tolist() == [prior] * classes


def test_descent_ascends_in_the_multipliers_at_the_dual_rate():
    outputs, targets = example(3)
    fast, slow = (trained(AUCPRLoss(3, dual_rate=rate)) for rate in (2.0, 0.1))
    for loss in (fast, slow):
        loss(outputs, targets).backward()
    torch.testing.assert_close(fast.multipliers.grad, 20 * slow.multipliers.grad)
    torch.testing.assert_close(fast.biases.grad, slow.biases.grad)

    before = slow(outputs, targets).item()
    with torch.no_grad():
        slow.multipliers -= 0.01 * slow.multipliers.grad
    assert slow(outputs, targets).item() > before
    with torch.no_grad():
        slow.multipliers += 0.01 * slow.multipliers.grad
        slow.biases -= 0.01 * slow.biases.grad
    assert slow(outputs, targets).item() < before


def test_gradients_equal_finite_differences_where_it_descends():
    outputs, targets = example(2, examples=6)
    loss = trained(AUCPRLoss(2, anchors=3))

    def value(logits, biases):
        parameters = {"biases": biases}
        return torch.func.functional_call(loss, parameters, (logits, targets))

    biases = loss.biases.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(value, (outputs.requires_grad_(), biases))


def test_frozen_it_still_has_a_gradient_and_a_state_to_restore():
    outputs, targets = example(3)
    loss = trained(AUCPRLoss(3, priors=[0.2, 0.3, 0.4]))
    expected = loss(outputs, targets).detach()
    restored = AUCPRLoss(3).double()
    restored.load_state_dict(loss.state_dict())
    restored.requires_grad_(False)
    value = restored(outputs.requires_grad_(), targets)
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert outputs.grad.abs().sum() > 0
    assert restored.multipliers.grad is None


def test_bad_settings_are_named():
    with pytest.raises(
        ConfigError, match=r"surrogate of logistic, hinge.* got surrogate='xent'"
    ):
        AUCPRLoss(3, surrogate="xent")
    for priors in ([0.5, 0.5], [0.5, 0.5, 0.0], [0.2, 1.0, 0.3]):
        with pytest.raises(ConfigError, match=r"3 priors in \(0, 1\), got \[0\."):
            AUCPRLoss(3, priors=priors)
