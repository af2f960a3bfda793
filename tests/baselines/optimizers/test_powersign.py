"""PowerSign against golden vectors, and what it is without signs."""

import pytest
import torch

from baselines.optimizers.powersign import PowerSign
from tests.golden import assert_golden, load_golden


def steps_of(optimizer, weight, gradients):
    """Return the weight after every step."""
    found = []
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
        found.append(weight.detach().clone())
    return torch.stack(found)


@pytest.mark.parametrize(
    "case", list(load_golden("powersign")), ids=lambda case: case.name
)
def test_golden(case):
    settings = case.settings
    weight = torch.nn.Parameter(case.inputs["w0"].clone())
    cosine = settings["sign_decay"] == "cosine"
    optimizer = PowerSign(
        [weight],
        settings["lr"],
        settings["decay_steps"] if cosine else None,
        beta=settings["beta"],
        base=settings["base"],
    )
    found = steps_of(optimizer, weight, case.inputs["grads"])
    assert_golden(found, case.expected["w_after_each_step"], case.tolerance)
    mean = optimizer.state[weight]["mean"]
    assert_golden(mean, case.expected["m_final"], case.tolerance)


def test_a_parabola_by_hand():
    # Gradients and their mean always agree: factors e^1, e^.853553, e^.5, e^.146447.
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer, found = PowerSign([weight], 0.1, 4), []
    for _ in range(4):
        optimizer.zero_grad()
        optimizer.step(lambda: (weight**2 / 2).sum().backward())
        found.append(weight.item())
    assert found == pytest.approx([0.728172, 0.557199, 0.465332, 0.411460], abs=1e-6)


def test_it_ends_as_gradient_descent():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    other = torch.nn.Parameter(weight.detach().clone())
    gradients = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    power = PowerSign([weight], 0.1, 2, weight_decay=0.01)
    steps_of(power, weight, gradients[:2])
    with torch.no_grad():
        other.copy_(weight)
    plain = torch.optim.SGD([other], 0.1, weight_decay=0.01)
    found = steps_of(power, weight, gradients[2:])
    torch.testing.assert_close(found, steps_of(plain, other, gradients[2:]))


def test_a_gradient_of_zero_moves_nothing():
    weight = torch.nn.Parameter(torch.ones(3))
    steps_of(PowerSign([weight]), weight, torch.zeros(2, 3))
    assert torch.equal(weight.detach(), torch.ones(3))


def test_it_goes_on_where_its_state_was_saved():
    gradients = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    weight = torch.nn.Parameter(torch.ones(2))
    first = PowerSign([weight], 0.1, 4)
    steps_of(first, weight, gradients[:2])
    copied = torch.nn.Parameter(weight.detach().clone())
    second = PowerSign([copied], 0.1, 4)
    second.load_state_dict(first.state_dict())
    one = steps_of(first, weight, gradients[2:])
    assert torch.equal(one, steps_of(second, copied, gradients[2:]))
