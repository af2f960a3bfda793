"""The dual iteration: a few steps of mirror descent on the loss of one task."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Generic, Literal, NamedTuple

import torch
from torch import Tensor

from metricopt.errors import (
    ConfigError,
    DivergedError,
    ShapeError,
    described,
    require_choice,
    require_whole,
)
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import Point, combined, is_finite

Order = Literal["full", "first"]
"""Whether derivatives of the path hold those of the inner gradients, or not."""


class DualPath(NamedTuple, Generic[Point]):
    """What K steps of mirror descent went through.

    Attributes:
        z: dual parameters z_0 to z_K.
        phi: parameters phi_0 to phi_K, phi_k = g(z_k); the last one is the result.
        gradients: of the loss in phi, at phi_0 to phi_{K-1}.
        losses: of the task at phi_0 to phi_{K-1}, shape [] each.
    """

    z: list[Point]
    phi: list[Point]
    gradients: list[Point]
    losses: list[Tensor]


def mirror_descent(
    mirror_map: Callable[[Point], Point],
    z_0: Point,
    loss: Callable[[Point], Tensor],
    *,
    steps: int,
    rate: float,
    order: Order = "full",
) -> DualPath[Point]:
    """Run z_k = z_{k-1} - rate * grad loss(phi_{k-1}), phi_k = g(z_k), for K steps.

    The gradient is taken in phi. A gradient in z of loss(g(z)) would hold the Jacobian
    of g as a factor: gradient descent on new coordinates, which is another method.

    The path is differentiable in z_0, in the weights of the map and in whatever the
    loss is made of. With order "first" the gradients are constants: the weights of the
    map then get a gradient through g(z_K) alone, and z_0 through the Jacobian at z_K.
    The values are the same. Call it under `torch.no_grad()` where no derivative is
    needed. It works inside of `torch.func`, for example `vmap` over tasks.

    A loss that becomes non-finite on the way is not an error: the path shows it.

    Args:
        mirror_map: g, a `MirrorMap` or any differentiable function from z to phi.
        z_0: where to start; `mirror_map.inverse(phi_0)` starts from a given phi.
        loss: from phi, in the form of z_0, to a scalar.
        steps: K, at least 0.
        rate: alpha, positive.
        order: "full" or "first".

    Raises:
        ConfigError: if steps, rate or order are out of range.
        ShapeError: if z_0 does not fit the map, or the loss is no scalar.
        DivergedError: if g(z_0) is not finite, for example as a scale overflows.

    Source: Zhang, Li, Giannakis, arXiv 2312.13486, "MD can be viewed as optimization
    over dual variable". Differs: nothing.
    """
    check_descent(steps, rate, order)
    path = DualPath([z_0], [_start(mirror_map, z_0)], [], [])
    for _ in range(steps):
        gradient, value = _gradient(loss, path.phi[-1], order)
        z = combined(lambda z, step: z - rate * step, path.z[-1], gradient)
        path.gradients.append(gradient)
        path.losses.append(value)
        path.z.append(z)
        path.phi.append(mirror_map(z))
    return path


def check_descent(steps: int, rate: float, order: Order) -> None:
    """Check the settings of mirror descent.

    Raises:
        ConfigError: if one is out of its range.
    """
    if require_whole("steps", steps) < 0:
        raise ConfigError(f"steps must be at least 0, got {steps}")
    given: Any = rate
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not (number and given > 0 and math.isfinite(given)):
        raise ConfigError(
            f"rate must be a positive and finite number, got {described(rate)}"
        )
    require_choice("order", order, Order)


def _start(mirror_map: Callable[[Point], Point], z_0: Point) -> Point:
    phi_0 = mirror_map(z_0)
    if not is_finite(phi_0):
        if isinstance(mirror_map, MirrorMap):
            mirror_map.check(z_0)
        raise DivergedError(
            "the mirror map must take z_0 to finite parameters; g(z_0) is not finite"
        )
    return phi_0


def _gradient(
    loss: Callable[[Point], Tensor], phi: Point, order: Order
) -> tuple[Point, Tensor]:
    def scalar(phi: Point) -> Tensor:
        value = loss(phi)
        if not isinstance(value, Tensor) or value.ndim:
            raise ShapeError(
                f"the loss must be a scalar tensor, got {described(value)}"
            )
        return value

    # Detached before, so that no graph of the gradient is kept, and after, since the
    # loss may hold other tensors that are learned.
    at = combined(torch.Tensor.detach, phi) if order == "first" else phi
    found: Any = torch.func.grad_and_value(scalar)(at)
    gradient, value = found
    if order == "first":
        return combined(torch.Tensor.detach, gradient), value.detach()
    return gradient, value
