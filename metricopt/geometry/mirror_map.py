"""The contract of a mirror map: from dual parameters z to parameters phi, and back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from metricopt.errors import DivergedError
from metricopt.geometry.parameters import (
    Parameters,
    Point,
    is_finite,
    parameter_shapes,
)


class MirrorMap(nn.Module, ABC):
    """A bijection g of the parameters of a task, with weights that can be learned.

    Mirror descent calls g the inverse mirror map: the gradient of h*, where the
    distance generating function h defines the geometry. Whether a map is such a
    gradient, its own docstring says. Every map is the identity before it is trained.

    Parameters are a mapping of named tensors or a flat vector of shape [d]. What a
    method returns has the form of what it got. Everything is differentiable, in the
    weights of the map too, and works inside of `torch.func`.

    Args:
        parameters: names and shapes of the parameters of a task.

    Attributes:
        shapes: names and shapes of the parameters of a task.
        linear: whether g(z) = P z, so that mirror descent is gradient descent in phi
            with the preconditioner P.

    Source: Zhang, Li, Giannakis, arXiv 2312.13486, "Learning loss geometry priors via
    mirror descent".
    """

    linear: ClassVar[bool] = False

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        self.shapes = parameter_shapes(parameters)

    def forward(self, z: Point) -> Point:
        """Return phi = g(z).

        Raises:
            ShapeError: if z does not fit the parameters of a task.
        """
        return self.shapes.like(z, self._primal(self.shapes.flat(z)))

    def inverse(self, phi: Point) -> Point:
        """Return the z with g(z) = phi.

        Raises:
            ShapeError: if phi does not fit the parameters of a task.
            DivergedError: if the map cannot be inverted in this precision.
        """
        refused = DivergedError(
            f"{type(self).__name__} cannot be inverted at this phi: a scale or a "
            "matrix is singular or not finite; use a bounded scale or double precision"
        )
        try:
            z = self._dual(self.shapes.flat(phi))
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            raise refused from error
        if is_finite(phi) and not is_finite(z):
            raise refused
        return self.shapes.like(phi, z)

    def log_det(self, z: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return log abs(det J), J the Jacobian of g at z; shape [].

        Raises:
            ShapeError: if z does not fit the parameters of a task.
        """
        return self._log_det(self.shapes.flat(z))

    def check(self, z: Tensor | Mapping[str, Tensor]) -> None:
        """Refuse a z at which the map is of no use.

        Raises:
            ShapeError: if z does not fit the parameters of a task.
            DivergedError: if a scale overflows or vanishes, or g(z) is not finite; the
                message names the parameter.
        """
        with torch.no_grad():
            flat = self.shapes.flat(z)
            self._refuse(self._scales(flat), "a scale of {} is {}", positive=True)
            self._refuse(self._primal(flat), "g(z) of {} is {}", positive=False)

    def _refuse(self, values: Tensor, text: str, *, positive: bool) -> None:
        for name, piece in self.shapes.pieces(values).items():
            # The values alone are read here, never what a transform makes of them.
            numbers = torch.func.debug_unwrap(piece)
            wrong = numbers[~numbers.isfinite() | (positive & (numbers <= 0))]
            if wrong.numel():
                found = text.format(repr(name), f"{wrong[0].item():g}")
                raise DivergedError(
                    f"{type(self).__name__} needs finite parameters and positive "
                    f"scales, but {found}; use a bounded scale, or a lower rate where "
                    "z comes from training"
                )

    @abstractmethod
    def _primal(self, z: Tensor) -> Tensor:
        """Return g(z), shape [d], for z of shape [d]."""

    @abstractmethod
    def _dual(self, phi: Tensor) -> Tensor:
        """Return the z of shape [d] with g(z) = phi, for phi of shape [d]."""

    @abstractmethod
    def _log_det(self, z: Tensor) -> Tensor:
        """Return log abs(det J) at z of shape [d]."""

    def _scales(self, z: Tensor) -> Tensor:
        """Return the factors of the map that must be positive, shape [d]."""
        return torch.ones_like(z)
