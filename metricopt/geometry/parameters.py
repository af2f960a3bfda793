"""The parameters of a task: named tensors, and the same numbers as one flat vector."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from metricopt.errors import (
    ConfigError,
    ShapeError,
    described,
    require_kind,
    require_whole,
)

Point = TypeVar("Point", Tensor, Mapping[str, Tensor])
"""Parameters in either form; what a function returns has the form of what it got."""


class ParameterShapes:
    """Names and shapes of the parameters of a task, in the order of the flat vector.

    Args:
        given: shape by name, or a tensor of that shape, in order: for example
            `dict(network.named_parameters())`.

    Attributes:
        by_name: shape of every tensor by name, in order.
        size: number of coordinates d of the flat vector, at least 1.

    Raises:
        ConfigError: if there is no parameter, or one that is no tensor or shape, or
            has no element.
    """

    def __init__(self, given: Mapping[str, Tensor | Sequence[int]]) -> None:
        require_kind("parameters", given, Mapping, "a mapping of named tensors")
        self.by_name = {name: _shape(name, value) for name, value in given.items()}
        empty = [name for name, shape in self.by_name.items() if not math.prod(shape)]
        if empty or not self.by_name:
            raise ConfigError(
                "parameters must be at least one named tensor with an element, "
                f"got {empty[0] + ' without any' if empty else 'none'}"
            )
        self.size = sum(map(math.prod, self.by_name.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors, in order."""
        return tuple(self.by_name)

    def sizes(self, names: Sequence[str] | None = None) -> list[int]:
        """Return how many coordinates each tensor has, or each of some tensors."""
        chosen = self.names if names is None else names
        return [math.prod(self.by_name[name]) for name in chosen]

    def flat(self, point: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return parameters as a vector, shape [d]: row-major tensors, one by one.

        Raises:
            ShapeError: if a tensor is missing, unknown or of another shape.
        """
        if isinstance(point, Tensor):
            if point.shape != (self.size,):
                raise ShapeError(
                    f"flat parameters must have shape [{self.size}], "
                    f"got {described(point)}"
                )
            return point
        require_kind("parameters", point, Mapping, "a tensor or named tensors")
        self._check_names(point)
        for name, shape in self.by_name.items():
            if tuple(point[name].shape) != shape:
                raise ShapeError(
                    f"parameter {name!r} must have shape {list(shape)}, "
                    f"got {described(point[name])}"
                )
        return torch.cat([point[name].reshape(-1) for name in self.by_name])

    def _check_names(self, point: Mapping[str, Tensor]) -> None:
        missing = [name for name in self.by_name if name not in point]
        unknown = [name for name in point if name not in self.by_name]
        if missing or unknown:
            wrong = f"{missing[0]!r} is missing" if missing else f"got {unknown[0]!r}"
            raise ShapeError(
                f"named parameters must be {', '.join(self.by_name)}; {wrong}"
            )

    def pieces(self, vector: Tensor) -> dict[str, Tensor]:
        """Return the part of a flat vector [d] that each tensor is, still flat."""
        return dict(zip(self.by_name, vector.split(self.sizes()), strict=True))

    def named(self, vector: Tensor) -> dict[str, Tensor]:
        """Return a flat vector [d] as named tensors."""
        pieces = self.pieces(vector)
        return {name: pieces[name].reshape(s) for name, s in self.by_name.items()}

    def like(self, point: Point, vector: Tensor) -> Point:
        """Return a flat vector [d] in the form of some other parameters."""
        return vector if isinstance(point, Tensor) else self.named(vector)


def _shape(name: str, value: Tensor | Sequence[int]) -> tuple[int, ...]:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    require_kind(f"parameter {name!r}", value, Sequence, "a tensor or a shape")
    return tuple(require_whole(f"a size of {name!r}", size) for size in value)


Parameters = ParameterShapes | Mapping[str, Tensor | Sequence[int]]
"""What a map is made for: shapes, or whatever makes them."""


def parameter_shapes(given: Parameters) -> ParameterShapes:
    """Return shapes as they are, or those of named tensors."""
    return given if isinstance(given, ParameterShapes) else ParameterShapes(given)


def vector_shapes(sizes: Sequence[int]) -> ParameterShapes:
    """Return the shapes of a plain vector cut into pieces, named "0", "1" and so on.

    A partition can then tell the coordinates of one flat vector apart.

    Raises:
        ConfigError: if there is no piece, or an empty one.
    """
    return ParameterShapes({str(i): (size,) for i, size in enumerate(sizes)})


def combined(function: Callable[..., Tensor], first: Point, *others: Point) -> Point:
    """Return what a function of tensors makes of parameters, tensor by tensor."""
    if isinstance(first, Tensor):
        return function(first, *others)
    return {
        name: function(value, *(other[name] for other in others))
        for name, value in first.items()
    }


def dot(first: Point, second: Point) -> Tensor:
    """Return the inner product of two points, shape []."""
    products = combined(lambda a, b: (a * b).sum(), first, second)
    if isinstance(products, Tensor):
        return products
    return torch.stack(list(products.values())).sum()


def is_finite(point: Tensor | Mapping[str, Tensor]) -> bool:
    """Return whether every number of a point is finite, also inside of `torch.func`."""
    tensors = [point] if isinstance(point, Tensor) else list(point.values())
    # The values alone are read here, never what a transform makes of them.
    return all(bool(torch.func.debug_unwrap(each).isfinite().all()) for each in tensors)
