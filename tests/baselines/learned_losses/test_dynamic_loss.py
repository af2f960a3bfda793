"""The teacher's loss, and its gradient through a student's steps."""

import copy
import math

import pytest
import torch
from torch import nn

from baselines.learned_losses.dynamic_loss import (
    STATE,
    LossParameters,
    StudentState,
    Teacher,
    Window,
    dynamic_loss,
    true_probability,
)

RATE, STEPS, CLASSES = 0.5, 4, 3


def student(norm=True, dropout=0.0):
    torch.manual_seed(0)
    parts = [nn.Linear(5, 6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, CLASSES)]
    if norm:
        parts.insert(1, nn.BatchNorm1d(6))
    return nn.Sequential(*parts).double()


def teacher():
    torch.manual_seed(1)
    return Teacher(CLASSES, slots=3).double()


def examples(seed, count=12):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 5, generator=generator, dtype=torch.double)
    return inputs, torch.randint(CLASSES, (count,), generator=generator)


def walked(taught, guide, literal=False):
    window = Window(taught, guide, RATE, literal=literal)
    for step in range(STEPS):
        state = torch.linspace(-1, 1, STATE, dtype=torch.double) * (step + 1)
        window.step(*examples(step), state, seed=step)
    return window


def cost(guide, literal, **kind):
    """The smoothed error after the steps, and nothing else."""
    taught = student(**kind)
    walked(taught, guide, literal)
    with torch.no_grad():
        inputs, targets = examples(99)
        return -true_probability(taught.eval()(inputs), targets).item()


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("kind", [{"norm": False}, {"norm": False, "dropout": 0.3}])
def test_hypergradient_is_that_of_finite_differences(kind, literal):
    guide, small = teacher(), 1e-5
    window = walked(student(**kind), guide, literal)
    found = window.hypergradient(*examples(99))
    for weight, gradient in zip(guide.parameters(), found, strict=True):
        flat = weight.data.view(-1)
        for place in range(0, len(flat), 5):
            kept = flat[place].item()
            flat[place] = kept + small
            above = cost(guide, literal, **kind)
            flat[place] = kept - small
            below = cost(guide, literal, **kind)
            flat[place] = kept
            expected = (above - below) / (2 * small)
            assert gradient.view(-1)[place].item() == pytest.approx(expected, abs=1e-8)
    assert max(part.abs().max() for part in found) > 1e-3


def test_batch_norm_is_that_of_the_step_when_it_is_recomputed():
    taught, guide = student(), teacher()
    window = walked(taught, guide)
    statistics = copy.deepcopy(dict(taught.named_buffers()))
    found = window.hypergradient(*examples(99))
    assert all(bool(part.isfinite().all()) for part in found)
    for name, buffer in taught.named_buffers():
        assert buffer.equal(statistics[name])


@pytest.mark.parametrize("literal", [False, True])
def test_the_first_loss_has_the_slope_of_cross_entropy_where_it_is_sure(literal):
    parameters = LossParameters(torch.eye(3), torch.zeros(()))
    outputs = torch.tensor([[9.0, 0.0, 0.0]], requires_grad=True)
    targets = torch.tensor([0])
    ours = dynamic_loss(outputs, targets, parameters, literal=literal)
    (ours,) = torch.autograd.grad(ours, outputs)
    loss = nn.functional.cross_entropy(outputs, targets)
    (plain,) = torch.autograd.grad(loss, outputs)
    assert torch.allclose(ours, plain, rtol=1e-3)


def test_a_state_says_what_was_seen():
    state = StudentState()
    sure, unsure = torch.tensor([[20.0, 0.0]] * 4), torch.zeros(4, 2)
    targets = torch.tensor([0, 0, 0, 1])
    state.train(sure, targets)
    state.hold_out(unsure, targets)
    state.hold_out(sure, targets)
    vector = state.vector(0.25)
    assert vector.shape == (STATE,)
    expected_loss = 5 / math.log(2)
    assert vector[:5].tolist() == pytest.approx(
        [0.25, expected_loss, 0.75, expected_loss, 0.75]
    )
    held = vector[5:9].tolist()
    assert held == pytest.approx([expected_loss, 0.75, 0.75, 0.0], abs=1e-6)
    # The loss was lowest, 1, before; both have risen since.
    assert vector[9:11].tolist() == pytest.approx([1.0, 0.75])
    assert vector[11:].tolist() == pytest.approx([expected_loss - 1, 0.0])
