"""What every mirror map keeps: identity at first, inverse, log-determinant, forms."""

import pytest
import torch

from metricopt.errors import DivergedError, ShapeError
from metricopt.geometry import mirror_descent
from tests.metricopt.geometry.drawn_maps import MAPS, SHAPES, SIZE, built, drawn, point

ONE = torch.float32
POTENTIALS = ("identity", "diagonal", "block-diagonal", "exact potential")
every_map = pytest.mark.parametrize("name", MAPS)


@every_map
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_map_is_the_identity_before_it_is_trained(name, dtype):
    z = 3 * point(dtype=dtype)
    g = built(name, dtype)
    assert torch.equal(g(z), z)
    assert torch.equal(g.inverse(z), z)
    assert g.log_det(z) == 0
    assert g(z).dtype == dtype


@every_map
def test_before_training_the_path_is_that_of_maml(name):
    target = point(5)
    g, z_0 = built(name), point()

    def loss(phi):
        return ((phi - target) ** 2 * phi.cosh().log()).sum()

    phi = z_0
    for _ in range(4):
        phi = phi - 0.05 * torch.func.grad(loss)(phi)
    path = mirror_descent(g, z_0, loss, steps=4, rate=0.05)
    assert torch.equal(path.phi[-1], phi)


@every_map
@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-12), (ONE, 1e-5)])
def test_the_inverse_undoes_the_map(name, dtype, near):
    g, z = drawn(name, dtype=dtype, by=0.15), point(dtype=dtype)
    moved = g(z)
    assert name == "identity" or (moved - z).abs().max() > 0.1
    assert (g.inverse(moved) - z).abs().max() < near
    assert (g(g.inverse(z)) - z).abs().max() < near


@every_map
def test_the_log_determinant_is_the_jacobians(name):
    g, z = drawn(name), point()
    jacobian = torch.func.jacrev(g)(z)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    assert (g.log_det(z) - expected).abs() < 1e-10
    if name in POTENTIALS:
        assert (jacobian - jacobian.T).abs().max() < 1e-10
        assert torch.linalg.eigvalsh(jacobian).min() > 0


@every_map
def test_named_tensors_are_the_flat_vector(name):
    g, z = drawn(name), point()
    named = g.shapes.named(z)
    assert {n: tuple(t.shape) for n, t in named.items()} == SHAPES
    shuffled = dict(reversed(named.items()))
    for method in (g, g.inverse):
        found = method(shuffled)
        assert list(found) == list(SHAPES)
        assert torch.equal(g.shapes.flat(found), method(z))
    assert torch.equal(g.log_det(named), g.log_det(z))


@every_map
def test_rows_under_vmap_are_as_one_by_one(name):
    g = drawn(name)
    rows = torch.stack([point(seed) for seed in range(3)])
    for method in (g, g.inverse, g.log_det):
        alone = torch.stack([method(row) for row in rows])
        torch.testing.assert_close(torch.func.vmap(method)(rows), alone)


@pytest.mark.parametrize("name", [name for name in MAPS if name != "identity"])
def test_every_weight_gets_a_gradient_once_drawn(name):
    g = drawn(name)
    rows = torch.stack([point(seed) for seed in range(5)])
    total = torch.func.vmap(g)(rows).square().sum()
    found = torch.autograd.grad(total, list(g.parameters()))
    assert all(gradient.isfinite().all() for gradient in found)
    assert all(gradient.any() for gradient in found)


@pytest.mark.parametrize("name", [name for name in MAPS if name != "identity"])
def test_inverses_differentiate_as_central_differences(name):
    g, phi = drawn(name), point().requires_grad_()
    weight = next(g.parameters())

    def along(step):
        with torch.no_grad():
            weight.add_(step)
            value = g.inverse(phi).square().sum()
            weight.sub_(step)
        return value

    direction = torch.randn(weight.shape, dtype=weight.dtype)
    (gradient,) = torch.autograd.grad(g.inverse(phi).square().sum(), weight)
    numeric = (along(1e-6 * direction) - along(-1e-6 * direction)) / 2e-6
    assert float((gradient * direction).sum()) == pytest.approx(
        float(numeric), rel=1e-6
    )
    assert torch.autograd.gradcheck(g.inverse, phi, fast_mode=True)
    v = point(7)
    assert torch.autograd.gradgradcheck(lambda x: g.inverse(x) @ v, phi, fast_mode=True)


@every_map
def test_parameters_that_do_not_fit_are_refused(name):
    g = built(name)
    named = g.shapes.named(point())
    wrong = {
        rf"flat parameters must have shape \[{SIZE}\]": point(size=SIZE + 1),
        r"'b' is missing": {n: t for n, t in named.items() if n != "b"},
        r"got 'extra'": {**named, "extra": point()},
        r"'w.2' must have shape \[3, 4\], got float64 \[4, 3\]": {
            **named,
            "w.2": named["w.2"].T,
        },
    }
    for message, z in wrong.items():
        for method in (g, g.inverse, g.log_det, g.check):
            with pytest.raises(ShapeError, match=message):
                method(z)


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("diagonal", "log_scale"),
        ("released blockIAF", "first_a"),
        ("exact potential", "log_scale"),
    ],
)
def test_a_scale_that_overflows_is_refused_before_the_loss_is_read(name, weight):
    g, z = built(name, ONE), point(dtype=ONE)
    g.check(z)
    getattr(g, weight).data[25] = 89.0
    called = []
    with pytest.raises(DivergedError, match="a scale of 'b' is inf; use a bounded"):
        mirror_descent(g, z, called.append, steps=1, rate=0.1)
    with pytest.raises(DivergedError, match="a scale of 'b' is inf"):
        g.check(g.shapes.named(z))
    assert not called


def test_a_scale_that_vanishes_has_no_inverse():
    g, z = built("released blockIAF", ONE), point(dtype=ONE)
    g.first_a.data[0] = -200
    assert g(z)[0] == 0
    with pytest.raises(DivergedError, match=r"a scale of 'w_1.weight' is 0"):
        g.check(z)
    with pytest.raises(DivergedError, match="BlockIAF cannot be inverted at this phi"):
        g.inverse(z)


@pytest.mark.parametrize("name", ["block-diagonal", "kronecker product"])
def test_a_singular_matrix_has_no_inverse(name):
    g = built(name)
    next(g.parameters()).data[0] = 0
    with pytest.raises(DivergedError, match="a scale or a matrix is singular"):
        g.inverse(point())


def test_under_vmap_the_tensor_with_the_wrong_scale_is_named():
    g = built("diagonal", ONE)
    columns = torch.stack([point(seed, dtype=ONE) for seed in range(3)], dim=1)
    columns[40, 1] = torch.inf
    with pytest.raises(DivergedError, match=r"g\(z\) of 'c' is inf"):
        torch.func.vmap(lambda z: (g.check(z), z)[1], in_dims=1)(columns)


def test_bounded_scales_do_not_overflow():
    for name in ("blockIAF, dense", "blockIAF, clamped"):
        g, z = built(name, ONE), point(dtype=ONE)
        g.first_a.data[:] = 1e4
        g.check(z)
        assert (g(z)[:24] / z[:24]).max() <= 20.1
