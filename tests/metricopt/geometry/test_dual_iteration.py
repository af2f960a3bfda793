"""Mirror descent against worked numbers, its special cases and its meta-gradients."""

import math

import pytest
import torch

from metricopt.errors import ConfigError, DivergedError, ShapeError
from metricopt.geometry import (
    BlockIAF,
    Dense,
    Diagonal,
    ExactPotential,
    Identity,
    KroneckerProduct,
    mirror_descent,
    vector_shapes,
)
from tests.metricopt.geometry.drawn_maps import MAPS, drawn, point, seeded


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def parabola(phi):
    return ((phi - 1) ** 2).sum()


def test_gradient_descent_and_its_meta_gradient_are_the_worked_numbers():
    z_0 = numbers(0.0).requires_grad_()
    path = mirror_descent(Identity({"x": (1,)}), z_0, parabola, steps=3, rate=0.1)
    assert path.phi[-1].item() == pytest.approx(0.488)
    assert [loss.item() for loss in path.losses] == pytest.approx([1, 0.64, 0.4096])
    (slope,) = torch.autograd.grad(path.phi[-1], z_0, retain_graph=True)
    assert slope.item() == pytest.approx(0.512)
    value = (path.phi[-1] - 2).square().sum() / 2
    (meta,) = torch.autograd.grad(value, z_0)
    assert meta.item() == pytest.approx(-0.774144)


def test_a_scale_and_a_shift_step_by_the_scale():
    path = mirror_descent(
        lambda z: 2 * z + 0.5, numbers(0.0), parabola, steps=3, rate=0.1
    )
    assert path.phi[-1].item() == pytest.approx(1 + 0.6**3 * (0.5 - 1))


def test_the_right_diagonal_solves_a_stiff_quadratic_in_one_step():
    g = Diagonal({"x": (2,)}).double()
    g.log_scale.data = numbers(0, math.log(0.01))

    def stiff(phi):
        return (phi[0] ** 2 + 100 * phi[1] ** 2) / 2

    start = numbers(1, 1)
    one = mirror_descent(g, g.inverse(start), stiff, steps=1, rate=1.0)
    assert one.phi[-1].detach().abs().max() < 1e-12
    plain = mirror_descent(Identity(g.shapes), start, stiff, steps=5, rate=0.01)
    assert plain.phi[-1].tolist() == pytest.approx([0.95099, 0], abs=1e-6)


def test_softmax_is_exponentiated_gradient():
    c = numbers(1, 2, 4)
    path = mirror_descent(
        lambda z: z.softmax(0), torch.zeros(3).double(), c.dot, steps=3, rate=0.5
    )
    assert path.phi[-1].tolist() == pytest.approx([0.8102, 0.1808, 0.0090], abs=5e-5)
    torch.testing.assert_close(path.phi[-1], (-1.5 * c).softmax(0))


def test_the_gradient_is_taken_in_phi_and_not_in_z():
    path = mirror_descent(
        lambda z: 2 * z, numbers(1.0), lambda phi: phi.dot(phi) / 2, steps=1, rate=0.1
    )
    assert path.z[1].item() == pytest.approx(0.8)
    assert path.phi[1].item() == pytest.approx(1.6)


def bowl(phi):
    """A loss of any number of parameters that is no quadratic."""
    return (phi - torch.linspace(-1, 1, len(phi)).double()).cosh().log().sum()


def test_one_block_without_shift_is_meta_sgd():
    rate, log_scale = 0.3, point(4, size=9)
    g = BlockIAF({"w": (9,)}, scale="exp").double()
    g.first_a.data = log_scale
    phi = point(5, size=9)
    path = mirror_descent(g, g.inverse(phi), bowl, steps=5, rate=rate)
    for found in path.phi:
        assert (found - phi).abs().max() < 1e-12
        phi = phi - rate * log_scale.exp() * torch.func.grad(bowl)(phi)


def test_a_linear_map_is_preconditioned_gradient_descent():
    g = KroneckerProduct({"w": (3, 2)}).double()
    rows, columns = g.matrices[0]
    rows.data, columns.data = point(1, size=9).view(3, 3), point(2, size=4).view(2, 2)
    matrix = torch.kron(rows, columns)
    phi = point(3, size=6)
    path = mirror_descent(g, g.inverse(phi), bowl, steps=4, rate=0.1)
    for found in path.phi:
        torch.testing.assert_close(found, phi)
        phi = phi - 0.1 * matrix @ torch.func.grad(bowl)(phi)


def query(phi):
    return (phi.sin() + phi.roll(1) * phi / 3).square().sum()


def meta_loss(g, z_0, order="full"):
    """Query loss after two steps."""
    path = mirror_descent(g, z_0, bowl, steps=2, rate=0.4, order=order)
    return query(path.phi[-1])


def small(kind):
    """A map of eight parameters with drawn weights."""
    shapes = vector_shapes([3, 3, 2])
    blocks = [["0"], ["1"], ["2"]]
    g = {
        "blockIAF": lambda: BlockIAF(
            shapes, blocks, conditioner=Dense(4, 3), generator=seeded()
        ),
        "exact potential": lambda: ExactPotential(shapes, 4, generator=seeded()),
        "kronecker product": lambda: KroneckerProduct(shapes),
    }[kind]().double()
    with torch.no_grad():
        for seed, weight in enumerate(g.parameters()):
            weight += 0.4 * point(seed, size=weight.numel()).view(weight.shape)
    return g


@pytest.mark.parametrize("kind", ["blockIAF", "exact potential", "kronecker product"])
def test_meta_gradients_are_central_differences(kind):
    g, z_0 = small(kind), point(11, size=8).requires_grad_()
    wanted = [z_0, *g.parameters()]
    found = torch.autograd.grad(meta_loss(g, z_0), wanted)
    for tensor, gradient in zip(wanted, found, strict=True):
        numeric = torch.zeros_like(tensor)
        for place in range(tensor.numel()):
            numeric.view(-1)[place] = difference(
                g, z_0, tensor.detach().view(-1), place
            )
        assert (gradient - numeric).norm() < 1e-6 * numeric.norm()


@torch.no_grad()
def difference(g, z_0, numbers, place, h=1e-5):
    """Central difference of the meta-loss in one number of a tensor."""
    values = []
    for step in (h, -2 * h):
        numbers[place] += step
        values.append(meta_loss(g, z_0.detach()))
    numbers[place] += h
    return (values[0] - values[1]) / (2 * h)


@pytest.mark.parametrize("kind", ["blockIAF", "exact potential"])
def test_first_order_has_the_same_value_and_another_gradient(kind):
    g, z_0 = small(kind), point(11, size=8).requires_grad_()
    wanted = [z_0, *g.parameters()]
    values = [meta_loss(g, z_0, order) for order in ("full", "first")]
    assert torch.equal(*values)
    full, first = (torch.autograd.grad(value, wanted) for value in values)
    assert not torch.allclose(full[0], first[0], rtol=1e-3)
    # Through g(z_K) alone: that is the gradient of the query loss at a constant z_K.
    path = mirror_descent(g, z_0.detach(), bowl, steps=2, rate=0.4)
    z_k = path.z[-1].detach().requires_grad_()
    last = torch.autograd.grad(query(g(z_k)), [z_k, *g.parameters()])
    for found, expected in zip(first, last, strict=True):
        torch.testing.assert_close(found, expected)


def test_first_order_keeps_other_tensors_of_the_loss_constant():
    slope = numbers(2.0).requires_grad_()
    for order, wanted in (("full", True), ("first", False)):
        path = mirror_descent(
            lambda z: 1 * z, numbers(1.0), slope.dot, steps=2, rate=0.1, order=order
        )
        assert path.phi[-1].item() == pytest.approx(0.6)
        assert path.phi[-1].requires_grad == wanted


@pytest.mark.parametrize("order", ["full", "first"])
def test_meta_gradients_under_torch_func_are_those_of_backward(order):
    g, z_0 = small("blockIAF"), point(11, size=8).requires_grad_()
    wanted = {"z_0": z_0, **dict(g.named_parameters())}
    expected = torch.autograd.grad(meta_loss(g, z_0, order), list(wanted.values()))

    def of(weights):
        others = {name: w for name, w in weights.items() if name != "z_0"}

        def called(z):
            return torch.func.functional_call(g, others, (z,))

        return meta_loss(called, weights["z_0"], order)

    found = torch.func.grad(of)({n: w.detach() for n, w in wanted.items()})
    for gradient, name in zip(expected, wanted, strict=True):
        torch.testing.assert_close(found[name], gradient)


@pytest.mark.parametrize("name", MAPS)
def test_tasks_and_starts_under_vmap_are_as_one_by_one(name):
    g = drawn(name)
    targets = torch.stack([point(seed) for seed in (3, 4, 5)])
    starts = torch.stack([point(seed) for seed in (6, 7, 8)])

    def adapted(z_0, target):
        def loss(phi):
            return (phi - target).cosh().log().sum()

        return mirror_descent(g, z_0, loss, steps=2, rate=0.05).phi[-1]

    alone = torch.stack([adapted(*each) for each in zip(starts, targets, strict=True)])
    torch.testing.assert_close(torch.func.vmap(adapted)(starts, targets), alone)
    shared = torch.func.vmap(adapted, in_dims=(None, 0))(starts[0], targets)
    torch.testing.assert_close(shared[0], alone[0])


def test_named_parameters_take_the_path_of_the_flat_vector():
    g, z_0 = drawn("blockIAF, kronecker"), point()
    flat = mirror_descent(g, z_0, bowl, steps=3, rate=0.1)
    named = mirror_descent(
        g, g.shapes.named(z_0), lambda phi: bowl(g.shapes.flat(phi)), steps=3, rate=0.1
    )
    for part, same in zip(flat[:3], named[:3], strict=True):
        for vector, tensors in zip(part, same, strict=True):
            torch.testing.assert_close(vector, g.shapes.flat(tensors))


def test_no_step_is_the_start_and_nothing_is_kept_without_gradients():
    g, z_0 = drawn("blockIAF, dense"), point()
    path = mirror_descent(g, z_0, bowl, steps=0, rate=0.1)
    assert (len(path.z), len(path.phi), path.gradients, path.losses) == (1, 1, [], [])
    assert torch.equal(path.phi[0], g(z_0))
    with torch.no_grad():
        path = mirror_descent(g, z_0, bowl, steps=2, rate=0.1)
    assert not any(each.requires_grad for each in (*path.phi, *path.losses))
    assert not torch.equal(path.phi[0], path.phi[-1])


def test_a_loss_that_diverges_shows_in_the_path():
    path = mirror_descent(
        Identity({"x": (1,)}), numbers(3.0), lambda phi: (phi**4).sum(), steps=9, rate=9
    )
    losses = torch.stack(path.losses)
    assert losses[:3].isfinite().all()
    assert not losses[-1].isfinite()


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"steps": -1}, ConfigError, "steps must be at least 0, got -1"),
        ({"steps": 1.5}, ConfigError, "steps must be a whole number, got 1.5"),
        ({"rate": 0.0}, ConfigError, "a positive and finite number, got 0.0"),
        ({"rate": math.inf}, ConfigError, "a positive and finite number, got inf"),
        ({"rate": math.nan}, ConfigError, "a positive and finite number, got nan"),
        ({"order": "second"}, ConfigError, "order must be one of 'full', 'first'"),
        ({"loss": lambda phi: phi}, ShapeError, r"a scalar tensor, got .*\[3\]"),
        ({"loss": lambda phi: 1.0}, ShapeError, "a scalar tensor, got 1.0"),
        ({"z_0": torch.ones(2)}, ShapeError, r"must have shape \[3\], got float32 \[2"),
        ({"mirror_map": lambda z: z / 0}, DivergedError, r"g\(z_0\) is not finite"),
    ],
)
def test_what_cannot_be_run_is_refused(changed, error, message):
    given = {
        "mirror_map": Identity({"x": (3,)}),
        "z_0": torch.ones(3),
        "loss": lambda phi: phi.sum(),
        "steps": 1,
        "rate": 0.1,
    }
    with pytest.raises(error, match=message):
        mirror_descent(**given | changed)


def test_a_start_that_is_not_finite_is_named():
    g, z_0 = drawn("diagonal"), point()
    z_0[30] = math.nan
    with pytest.raises(DivergedError, match=r"g\(z\) of 'w.2' is nan"):
        mirror_descent(g, z_0, bowl, steps=1, rate=0.1)
