"""The Lovasz losses against their set function, golden vectors and degenerate sets."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from baselines.losses.contract import LOSSES
from baselines.losses.lovasz_extension import jaccard_increments, lovasz_extension
from baselines.losses.lovasz_hinge import lovasz_hinge
from baselines.losses.lovasz_softmax import lovasz_softmax
from metricopt.errors import ConfigError, ShapeError
from tests.golden import assert_golden, load_golden


def jaccard_loss(wrong, foreground):
    """1 - |A and B| / |A or B| for truth A and the prediction with these mistakes."""
    truth = {i for i, flag in enumerate(foreground) if flag}
    predicted = truth ^ set(wrong)
    union = truth | predicted
    return 1 - len(truth & predicted) / len(union) if union else 0.0


def naive_extension(errors, foreground):
    """The extension from its definition: sorted errors times gains of the set loss."""
    order = sorted(range(len(errors)), key=lambda i: -errors[i])
    total = 0.0
    for position, element in enumerate(order):
        gain = jaccard_loss(order[: position + 1], foreground)
        gain -= jaccard_loss(order[:position], foreground)
        total += errors[element] * gain
    return total


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 0.5, 1.0, 2.5]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_extension_equals_the_definition(pairs):
    errors, foreground = zip(*pairs, strict=True)
    actual = lovasz_extension(
        torch.tensor(errors, dtype=torch.float64)[:, None],
        torch.tensor(foreground)[:, None],
    )
    assert actual.item() == pytest.approx(naive_extension(errors, foreground))


def test_extension_equals_the_set_function_on_every_vertex():
    foreground = [True, False, True, False]
    for wrong in itertools.product([0.0, 1.0], repeat=4):
        chosen = [i for i, flag in enumerate(wrong) if flag]
        actual = lovasz_extension(
            torch.tensor(wrong)[:, None], torch.tensor(foreground)[:, None]
        )
        assert actual.item() == pytest.approx(jaccard_loss(chosen, foreground))


def test_columns_are_sets_of_their_own():
    generator = torch.Generator().manual_seed(0)
    errors = torch.rand(9, 3, generator=generator, dtype=torch.float64)
    foreground = torch.rand(9, 3, generator=generator) < 0.4
    expected = [
        naive_extension(errors[:, s].tolist(), foreground[:, s].tolist())
        for s in range(3)
    ]
    torch.testing.assert_close(
        lovasz_extension(errors, foreground), torch.tensor(expected).double()
    )


def test_increments_add_up_to_the_whole_loss():
    foreground = torch.tensor([[1.0], [0.0], [0.0], [1.0], [0.0]])
    assert jaccard_increments(foreground).sum().item() == pytest.approx(1.0)


def test_all_negative_set_is_its_largest_error():
    errors = torch.tensor([[0.3], [0.9], [0.1]])
    actual = lovasz_extension(errors, torch.zeros(3, 1, dtype=torch.bool))
    assert actual.item() == pytest.approx(0.9)


def test_ties_do_not_change_the_value():
    logits = torch.zeros(1, 6, dtype=torch.float64)
    labels = torch.tensor([[1, 0, 0, 1, 1, 0]])
    values = [
        lovasz_hinge(logits, labels[:, list(order)]).item()
        for order in itertools.permutations(range(6))
    ]
    assert max(values) == pytest.approx(min(values), abs=1e-12)


@pytest.mark.parametrize("per_image", [True, False])
def test_empty_set_is_zero_and_connected(per_image):
    logits = torch.ones(2, 3, requires_grad=True)
    labels = torch.full((2, 3), 255)
    loss = lovasz_hinge(logits, labels, per_image=per_image, ignore=255)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.abs().sum() == 0

    probabilities = torch.full((2, 4, 3), 0.25, requires_grad=True)
    for classes in ("present", "all"):
        loss = lovasz_softmax(
            probabilities, labels, classes=classes, per_image=per_image, ignore=255
        )
        loss.backward()
        assert loss.item() == 0
    assert probabilities.grad.abs().sum() == 0


def test_hinge_golden():
    names = []
    for name, settings, inputs, expected, tolerance in load_golden("lovasz_hinge"):
        logits = inputs["logits"].requires_grad_()
        loss = lovasz_hinge(
            logits,
            inputs["labels"],
            per_image=settings["per_image"],
            ignore=settings["ignore"],
        )
        loss.backward()
        assert_golden(loss.detach(), expected["loss"], tolerance)
        assert_golden(logits.grad, expected["grad_logits"], tolerance)
        names.append(name)
    assert len(names) == 6


def test_softmax_golden():
    names = []
    for name, settings, inputs, expected, tolerance in load_golden("lovasz_softmax"):
        logits = inputs["logits"].requires_grad_()
        probabilities = logits.softmax(1)
        probabilities.retain_grad()
        loss = lovasz_softmax(
            probabilities,
            inputs["labels"],
            classes=settings["classes"],
            per_image=settings["per_image"],
            ignore=settings["ignore"],
        )
        loss.backward()
        assert_golden(loss.detach(), expected["loss"], tolerance)
        assert_golden(probabilities.grad, expected["grad_probas"], tolerance)
        assert_golden(logits.grad, expected["grad_logits"], tolerance)
        names.append(name)
    assert len(names) == 6


def test_one_logit_is_the_two_column_form():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    targets = torch.randint(2, (20,), generator=generator)
    columns = torch.cat([torch.zeros_like(logits), logits], 1).softmax(1)
    actual = LOSSES.get("lovasz-softmax")(logits, targets)
    torch.testing.assert_close(actual, lovasz_softmax(columns, targets, classes="all"))

    negatives = torch.zeros_like(targets)
    both = LOSSES.get("lovasz-softmax")(logits, negatives)
    background = naive_extension(columns[:, 1].tolist(), [True] * 20)
    foreground = columns[:, 1].max().item()
    assert both.item() == pytest.approx((background + foreground) / 2)


def test_bad_arguments_are_named():
    probabilities, labels = torch.full((2, 3, 4), 1 / 3), torch.zeros(2, 4).long()
    with pytest.raises(ShapeError, match=r"\[B, \.\.\.\], got \[2, 3, 4\] and \[2\]"):
        lovasz_softmax(probabilities, labels[:, 0])
    for classes in ("some", [], [0, 3]):
        with pytest.raises(ConfigError, match=r"indices in \[0, 2\], got"):
            lovasz_softmax(probabilities, labels, classes=classes)
    with pytest.raises(ShapeError, match=r"of one shape, got \[2, 3\] and \[2, 4\]"):
        lovasz_hinge(torch.zeros(2, 3), labels)
