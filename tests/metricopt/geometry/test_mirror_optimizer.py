"""The steps of torch's optimizers in a geometry."""

import copy
import functools

import pytest
import torch

from metricopt.errors import ConfigError
from metricopt.geometry import (
    Diagonal,
    ExactPotential,
    Identity,
    MirrorMap,
    MirrorOptimizer,
    mirror_descent,
    vector_shapes,
)
from tests.metricopt.drawn import draw, seeded
from tests.metricopt.geometry.drawn_maps import SIZE, drawn

SGD, ADAM = torch.optim.SGD, torch.optim.Adam
KINDS = {
    "sgd": functools.partial(SGD, lr=0.1),
    "momentum": functools.partial(SGD, lr=0.1, momentum=0.9),
    "adam": functools.partial(ADAM, lr=0.1),
}


class Slanted(MirrorMap):
    """g(z) = (z_1, z_2 + slant z_1), which turns some directions round."""

    def __init__(self, slant=3.0):
        super().__init__(vector_shapes([2]))
        self.slant = slant

    def _primal(self, z):
        return torch.stack([z[0], z[1] + self.slant * z[0]])

    def _dual(self, phi):
        return torch.stack([phi[0], phi[1] - self.slant * phi[0]])

    def _log_det(self, z):
        return z.new_zeros(())


def parameter(*values):
    return torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))


def stepped(optimizer, phi, gradients):
    for gradient in gradients:
        phi.grad = gradient.clone()
        optimizer.step()
    return phi.detach()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6,), (4, 6)])
def test_the_identity_is_the_wrapped_optimizer_bit_for_bit(kind, shape):
    start, gradients = draw(*shape), draw(30, *shape, seed=1)
    alone, wrapped = (torch.nn.Parameter(start.clone()) for _ in range(2))
    expected = stepped(KINDS[kind]([alone]), alone, gradients)
    optimizer = MirrorOptimizer(KINDS[kind]([wrapped]), Identity(vector_shapes([6])))
    assert torch.equal(stepped(optimizer, wrapped, gradients), expected)
    assert optimizer.health.fallback_share == 0
    assert optimizer.health.cosine == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["diagonal", "blockIAF, clamped", "exact potential"])
def test_it_is_mirror_descent_on_a_quadratic_in_every_row(name):
    geometry, minimum = drawn(name), draw(SIZE, seed=3).double()
    start = draw(3, SIZE).double()

    def loss(phi):
        return (phi - minimum).square().sum(-1) / 2

    phi = torch.nn.Parameter(start.clone())
    optimizer = MirrorOptimizer(SGD([phi], lr=0.05), geometry)
    for _ in range(6):
        optimizer.zero_grad()
        loss(phi).sum().backward()
        optimizer.step()
    with torch.no_grad():
        for row in range(3):
            z_0 = geometry.inverse(start[row])
            path = mirror_descent(geometry, z_0, loss, steps=6, rate=0.05)
            torch.testing.assert_close(phi[row], path.phi[-1], rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(optimizer.z[row], path.z[-1])
    assert optimizer.health.fallbacks == 0


def test_the_start_stays_and_a_zero_direction_does_not_move():
    start = draw(3, SIZE).double()
    phi = torch.nn.Parameter(start.clone())
    geometry = drawn("blockIAF, dense")
    optimizer = MirrorOptimizer(SGD([phi], lr=0.1), geometry)
    assert torch.equal(phi, start)
    optimizer.step()  # without a gradient
    assert optimizer.health.steps == 0
    stepped(optimizer, phi, torch.zeros(1, 3, SIZE).double())
    torch.testing.assert_close(phi.detach(), start, rtol=0, atol=1e-12)
    assert optimizer.cosines.isnan().all()
    assert optimizer.health == (3, 0, 0, 0.0)


def test_a_step_that_would_ascend_is_taken_in_phi_and_counted():
    phi = torch.nn.Parameter(torch.zeros(2, 2).double())
    optimizer = MirrorOptimizer(SGD([phi], lr=1.0), Slanted())
    # v^T J v is v_1^2 + v_2^2 + 3 v_1 v_2: below 0 in the first row, not in the second.
    stepped(optimizer, phi, torch.tensor([[[-1.0, 1.0], [-1.0, -1.0]]]).double())
    assert phi.tolist() == [[1.0, -1.0], [1.0, 4.0]]
    assert optimizer.z.tolist() == [[1.0, -4.0], [1.0, 1.0]]
    # J v is (1, 2) and (1, 4).
    expected = [(1 - 2) / 10**0.5, (1 + 4) / 34**0.5]
    assert optimizer.cosines.tolist() == pytest.approx(expected)
    assert optimizer.health.fallbacks == 1
    assert optimizer.health.fallback_share == 0.5
    assert optimizer.health.cosine == pytest.approx(sum(expected) / 2)
    # From there on it goes on in the geometry.
    stepped(optimizer, phi, torch.tensor([[[0.0, -1.0], [0.0, -1.0]]]).double())
    assert phi.tolist() == [[1.0, 0.0], [1.0, 5.0]]


def test_a_step_beyond_numbers_is_taken_in_phi():
    class Cubic(Diagonal):
        def _primal(self, z):
            return z + z**3

        def _dual(self, phi):
            return phi.clone()  # of no use but at 0

    phi = torch.nn.Parameter(torch.zeros(1, 1))
    optimizer = MirrorOptimizer(SGD([phi], lr=1.0), Cubic(vector_shapes([1])))
    stepped(optimizer, phi, torch.tensor([[[-1e20]]]))
    assert phi.item() == pytest.approx(1e20)
    assert optimizer.health.fallbacks == 1


def test_momentum_is_applied_before_the_dual_step():
    geometry = Diagonal(vector_shapes([1])).double()
    geometry.log_scale.data.fill_(2.0).log_()
    phi = parameter(1.0)
    optimizer = MirrorOptimizer(SGD([phi], lr=0.1, momentum=0.5), geometry)
    stepped(optimizer, phi, torch.ones(2, 1).double())
    # z moves by 0.1, then by 0.1 (1 + 0.5); phi by twice as much.
    assert phi.item() == pytest.approx(1 - 0.2 * 2.5)
    assert optimizer.move.item() == pytest.approx(-0.15)


def test_it_follows_phi_wherever_else_it_goes():
    geometry = drawn("blockIAF, dense")
    phi = torch.nn.Parameter(draw(3, SIZE).double())
    optimizer = MirrorOptimizer(SGD([phi], lr=0.1), geometry)
    stepped(optimizer, phi, draw(2, 3, SIZE, seed=1).double())
    z = optimizer.z.clone()
    with torch.no_grad():
        phi[1] *= 0.5
    assert torch.equal(optimizer.z[[0, 2]], z[[0, 2]])
    torch.testing.assert_close(geometry(optimizer.z[1]), phi[1])


def test_schedulers_closures_and_a_state_work_as_torch_s():
    geometry = drawn("blockIAF, clamped")
    phi = torch.nn.Parameter(draw(2, SIZE).double())
    optimizer = MirrorOptimizer(ADAM([phi], lr=0.1), geometry)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def closure():
        optimizer.zero_grad()
        loss = phi.square().sum()
        loss.backward()
        return loss.item()

    first = optimizer.step(closure)
    schedule.step()
    assert optimizer.optimizer.param_groups[0]["lr"] == 0.05
    kept, at = copy.deepcopy(optimizer.state_dict()), phi.detach().clone()
    assert optimizer.step(closure) < first
    again = torch.nn.Parameter(at)
    other = MirrorOptimizer(ADAM([again], lr=0.1), geometry)
    other.load_state_dict(kept)
    again.grad = 2 * at
    other.step()
    assert torch.equal(again, phi)
    assert other.health == optimizer.health
    assert other.param_groups[0]["lr"] == 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD([parameter(1.0), parameter(2.0)]), "alone, got one over 2"),
        (lambda: SGD([parameter(1.0)]), r"shape \[2\] or \[R, 2\].*got \[1\]"),
        (lambda: SGD([torch.nn.Parameter(torch.zeros(1, 1, 2))]), r"got \[1, 1, 2\]"),
        (lambda: "sgd", "must be a torch optimizer over phi, got 'sgd'"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        MirrorOptimizer(make(), Slanted())


def test_another_map_or_state_is_refused():
    phi = parameter(0.0, 0.0)
    with pytest.raises(ConfigError, match="mirror_map must be a MirrorMap"):
        MirrorOptimizer(SGD([phi]), torch.nn.Linear(2, 2))
    optimizer = MirrorOptimizer(SGD([phi]), Slanted())
    for state in (SGD([phi]).state_dict(), _state_of_three_rows()):
        with pytest.raises(ConfigError, match=r"z of shape \[1, 2\], got"):
            optimizer.load_state_dict(state)


def _state_of_three_rows():
    phi = torch.nn.Parameter(torch.zeros(3, 2))
    potential = ExactPotential(vector_shapes([2]), 2, generator=seeded())
    return MirrorOptimizer(SGD([phi]), potential).state_dict()
