"""The Lovasz losses against their set function, golden vectors and degenerate sets."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from baselines.losses.lovasz_extension import jaccard_increments, lovasz_extension
from baselines.losses.lovasz_hinge import lovasz_hinge
from baselines.losses.lovasz_softmax import class_losses, foreground, lovasz_softmax
from tests.golden import assert_golden, load_golden

HINGE, SOFTMAX = list(load_golden("lovasz_hinge")), list(load_golden("lovasz_softmax"))


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
    logits = torch.zeros(6, 1, dtype=torch.float64)
    labels = torch.tensor([1, 0, 0, 1, 1, 0])
    values = [
        lovasz_hinge(logits, labels[list(order)]).item()
        for order in itertools.permutations(range(6))
    ]
    assert max(values) == pytest.approx(min(values), abs=1e-12)


def test_an_empty_set_is_zero_and_connected():
    errors = torch.ones(0, 2, requires_grad=True)
    loss = lovasz_extension(errors, torch.zeros(0, 2, dtype=torch.bool))
    loss.sum().backward()
    assert loss.tolist() == [0, 0]
    assert errors.grad.shape == (0, 2)


def sets_of(case, values):
    """Values [n, ...] and labels [n] of every set of a golden case.

    Images apart are sets whose losses are averaged; ignored elements are in none.
    """
    labels, ignored = case.inputs["labels"], case.settings["ignore"]
    together = [(values, labels)]
    sets = zip(values, labels, strict=True) if case.settings["per_image"] else together
    for own, targets in sets:
        kept = targets != (-1 if ignored is None else ignored)
        yield own[kept], targets[kept]


@pytest.mark.parametrize("case", HINGE, ids=lambda case: case.name)
def test_hinge_golden(case):
    logits = case.inputs["logits"].requires_grad_()
    losses = [lovasz_hinge(own[:, None], t) for own, t in sets_of(case, logits)]
    loss = torch.stack(losses).mean()
    loss.backward()
    assert_golden(loss.detach(), case.expected["loss"], case.tolerance)
    assert_golden(logits.grad, case.expected["grad_logits"], case.tolerance)


@pytest.mark.parametrize("case", SOFTMAX, ids=lambda case: case.name)
def test_softmax_golden(case):
    logits, classes = case.inputs["logits"].requires_grad_(), case.settings["classes"]
    probabilities = logits.softmax(1)
    probabilities.retain_grad()
    losses = []
    for rows, targets in sets_of(case, probabilities.movedim(1, -1)):
        own = foreground(rows, targets)
        every = range(rows.shape[1]) if isinstance(classes, str) else classes
        chosen = [c for c in every if classes != "present" or own[:, c].any()]
        losses.append(class_losses(rows, own)[chosen].mean())
    loss = torch.stack(losses).mean()
    loss.backward()
    assert_golden(loss.detach(), case.expected["loss"], case.tolerance)
    assert_golden(probabilities.grad, case.expected["grad_probas"], case.tolerance)
    assert_golden(logits.grad, case.expected["grad_logits"], case.tolerance)
    if classes == "present":
        sets = sets_of(case, logits.detach().movedim(1, -1))
        found = torch.stack([lovasz_softmax(*own) for own in sets]).mean()
        assert_golden(found, case.expected["loss"], case.tolerance)


def test_one_logit_is_the_two_column_form():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    targets = torch.randint(2, (20,), generator=generator)
    columns = torch.cat([torch.zeros_like(logits), logits], 1).softmax(1)
    actual = lovasz_softmax(logits, targets)
    expected = class_losses(columns, foreground(columns, targets)).mean()
    torch.testing.assert_close(actual, expected)

    both = lovasz_softmax(logits, torch.zeros_like(targets))
    background = naive_extension(columns[:, 1].tolist(), [True] * 20)
    nothing = columns[:, 1].max().item()
    assert both.item() == pytest.approx((background + nothing) / 2)
