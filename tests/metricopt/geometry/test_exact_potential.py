"""The exact-potential map: the gradient of h*, its bounds, and that it can learn."""

import pytest
import torch

from metricopt.errors import ConfigError, DivergedError
from metricopt.geometry import ExactPotential, exact_potential
from tests.metricopt.geometry.drawn_maps import point, seeded


def drawn_potential(size=12, rank=5, spread=1.0):
    g = ExactPotential({"w": (size,)}, rank, generator=seeded()).double()
    with torch.no_grad():
        for seed, weight in enumerate(g.parameters()):
            weight += spread * point(seed, size=weight.numel()).view(weight.shape)
    return g


def test_it_is_the_gradient_of_its_potential():
    g, z = drawn_potential(), point(9, size=12)

    def potential(z):
        quadratic = (g.log_scale.exp() * z) @ z / 2
        return quadratic + (g.weight @ z + g.bias).cosh().log().sum() + g.shift @ z

    torch.testing.assert_close(g(z), torch.func.grad(potential)(z))


def test_its_jacobian_is_symmetric_and_within_the_bounds():
    g = drawn_potential()
    scales = g.log_scale.exp()
    steepest = scales.max() + torch.linalg.matrix_norm(g.weight, 2) ** 2
    for seed in range(20):
        jacobian = torch.func.jacrev(g)(3 * point(seed, size=12))
        assert (jacobian - jacobian.T).abs().max() < 1e-10
        values = torch.linalg.eigvalsh(jacobian)
        assert values.min() >= scales.min() - 1e-12
        assert values.max() <= steepest


def test_it_is_increasing_as_an_operator():
    g = drawn_potential()
    for seed in range(20):
        z, other = point(seed, size=12), 10 * point(seed + 50, size=12)
        step = z - other
        rise = (g(z) - g(other)) @ step
        assert rise >= g.log_scale.exp().min() * step @ step


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
def test_the_inverse_is_found_for_steep_and_for_flat_maps(spread):
    g = drawn_potential(spread=spread)
    g.log_scale.data = point(4, size=12)
    for seed in range(10):
        z = 5 * point(seed, size=12)
        assert (g.inverse(g(z)) - z).abs().max() < 1e-9
        phi = point(seed, size=12)
        back = g(g.inverse(phi))
        assert (back - phi).abs().max() < 1e-9 * max(spread**2, 1)


def test_it_learns_from_the_identity_beyond_one_direction():
    g = ExactPotential({"w": (12,)}, 5, generator=seeded()).double()
    optimizer = torch.optim.SGD(g.parameters(), lr=1e-2)
    for seed in range(6):
        optimizer.zero_grad()
        z = point(seed, size=12)
        (g(z) - z.flip(0)).square().sum().backward()
        if not seed:
            assert g.weight.grad.any(dim=1).all()
        optimizer.step()
    assert torch.linalg.matrix_rank(g.weight.detach(), rtol=1e-6) > 1


def test_a_rank_below_one_is_refused():
    with pytest.raises(ConfigError, match="needs rank >= 1, got rank=0"):
        ExactPotential({"w": (2,)}, 0)


def test_an_inverse_that_is_not_found_says_so(monkeypatch):
    monkeypatch.setattr(exact_potential, "NEWTON_STEPS", 1)
    with pytest.raises(DivergedError, match="must leave a relative error below 2e-13"):
        drawn_potential().inverse(point(1, size=12))
