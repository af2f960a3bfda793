"""Health of a geometry: whether its steps descend.

A map with a Jacobian J moves phi by -rate J grad, to first order. This descends if and
only if grad^T J grad > 0, which a blockIAF does not guarantee.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from metricopt.geometry.dual_iteration import DualPath
from metricopt.geometry.parameters import Point, combined, dot


def step_cosines(path: DualPath[Point]) -> Tensor:
    """Return the cosine between every step in phi and the negative gradient before it.

    Args:
        path: K steps of mirror descent.

    Returns:
        Shape [K], in [-1, 1]: 1 for gradient descent; below 0 for a step that ascends,
        to first order; NaN where the step or the gradient is zero.
    """
    moves = zip(path.phi, path.phi[1:], path.gradients, strict=False)
    found = [
        cosine(combined(torch.sub, before, after), gradient)
        for before, after, gradient in moves
    ]
    return torch.stack(found) if found else torch.zeros(0)


def tangent_cosine(
    mirror_map: Callable[[Point], Point], z: Point, direction: Point
) -> Tensor:
    """Return the cosine between a direction v and J v, J the Jacobian of the map at z.

    It is the limit of `step_cosines` for small rates, with v the gradient: one product
    of the Jacobian with a vector. Below 0, a small step along v ascends.

    Args:
        mirror_map: g, differentiable.
        z: dual parameters.
        direction: v, in the form of z.

    Returns:
        Shape [], in [-1, 1]; NaN where v or J v is zero.

    Raises:
        ShapeError: if z does not fit the map.
    """
    # Two products with the transpose: torch's forward mode warns at its first use.
    found: Any = torch.func.vjp(mirror_map, z)
    phi, pull = found
    found = torch.func.vjp(lambda w: pull(w)[0], phi)
    return cosine(found[1](direction)[0], direction)


def cosine(first: Point, second: Point) -> Tensor:
    """Return the cosine between two points, shape []; NaN where one is zero."""
    lengths = dot(first, first).sqrt() * dot(second, second).sqrt()
    return (dot(first, second) / lengths).clamp(-1, 1)
