"""Cosines between steps and negative gradients."""

import pytest
import torch

from metricopt.errors import ShapeError
from metricopt.geometry import (
    Identity,
    mirror_descent,
    step_cosines,
    tangent_cosine,
)
from tests.metricopt.geometry.drawn_maps import drawn, point


def bowl(phi):
    return (phi - 1).cosh().log().sum()


def test_gradient_descent_steps_along_the_negative_gradient():
    g = Identity({"x": (5,)})
    path = mirror_descent(g, point(size=5), bowl, steps=3, rate=0.1)
    torch.testing.assert_close(step_cosines(path), torch.ones(3).double())


def test_a_mirrored_axis_ascends_and_shows():
    """g = diag(1, -1) and a gradient (a, b): (a^2 - b^2) / (a^2 + b^2)."""
    signs = torch.tensor([1.0, -1.0])
    path = mirror_descent(
        lambda z: signs * z,
        torch.zeros(2),
        lambda phi: phi @ torch.tensor([1.0, 3.0]),
        steps=2,
        rate=0.1,
    )
    assert step_cosines(path).tolist() == pytest.approx([-0.8, -0.8])
    tangent = tangent_cosine(
        lambda z: signs * z, torch.zeros(2), torch.tensor([1.0, 3])
    )
    assert tangent.item() == pytest.approx(-0.8)


@pytest.mark.parametrize("name", ["blockIAF, dense", "exact potential"])
def test_cosines_of_small_steps_are_those_of_the_jacobian(name):
    g, z_0 = drawn(name), point()
    jacobian = torch.func.jacrev(g)(z_0)
    path = mirror_descent(g, z_0, bowl, steps=1, rate=1e-6)
    v = path.gradients[0]
    moved = jacobian @ v
    expected = moved @ v / (moved.norm() * v.norm())
    torch.testing.assert_close(tangent_cosine(g, z_0, v), expected)
    assert step_cosines(path)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_named_parameters_have_the_cosines_of_the_flat_vector():
    g, z_0 = drawn("blockIAF, kronecker"), point()
    named = g.shapes.named
    flat = mirror_descent(g, z_0, bowl, steps=2, rate=0.1)
    same = mirror_descent(
        g, named(z_0), lambda phi: bowl(g.shapes.flat(phi)), steps=2, rate=0.1
    )
    torch.testing.assert_close(step_cosines(same), step_cosines(flat))
    v = point(3)
    torch.testing.assert_close(
        tangent_cosine(g, named(z_0), named(v)), tangent_cosine(g, z_0, v)
    )


def test_a_step_of_no_length_has_no_cosine():
    g = Identity({"x": (2,)})
    path = mirror_descent(g, torch.ones(2), bowl, steps=1, rate=0.1)
    assert step_cosines(path).isnan().all()
    nothing = mirror_descent(g, torch.ones(2), bowl, steps=0, rate=0.1)
    assert step_cosines(nothing).shape == (0,)


def test_a_point_that_does_not_fit_is_refused():
    g = Identity({"x": (2,)})
    with pytest.raises(ShapeError, match=r"must have shape \[2\]"):
        tangent_cosine(g, torch.ones(3), torch.ones(3))
