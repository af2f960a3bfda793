"""A plane through solutions: where they lie on it, and which points it has.

Source: Li et al., NeurIPS 2018, "Visualizing the loss landscape of neural nets".
Differs: directions are not drawn at random but lead to solutions, so they cannot be
rescaled filter by filter. Lengths are measured in units of each filter's norm instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError

LEAST = 1e-9
"""Share of the squared lengths below which a direction is rounding."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane through an origin in a space of D weights.

    Attributes:
        origin: shape [D], float64.
        units: length of one unit along every weight, above 0, shape [D].
        directions: orthonormal in these units, shape [2, D].
        share: share of the solutions' squared displacements that lies on the plane.
    """

    origin: Tensor
    units: Tensor
    directions: Tensor
    share: float

    def coordinates(self, points: Tensor) -> Tensor:
        """Return where points [n, D] are projected to, shape [n, 2]."""
        return self._displaced(points) @ self.directions.T

    def distances(self, points: Tensor) -> Tensor:
        """Return how far points [n, D] are from the plane, in units, shape [n]."""
        places = self.coordinates(points)
        return (self._displaced(points) - places @ self.directions).norm(dim=1)

    def at(self, coordinates: Tensor) -> Tensor:
        """Return the points [n, D] at coordinates [n, 2]."""
        return self.origin + self.units * (coordinates @ self.directions)

    def _displaced(self, points: Tensor) -> Tensor:
        return (points.double() - self.origin) / self.units


def principal_plane(origin: Tensor, solutions: Tensor, units: Tensor) -> Plane:
    """Return the plane that displacements from an origin lie on best.

    Its directions are the first two principal ones of the displacements, uncentred, so
    that the origin is on it. The solution that is farthest along a direction is on the
    positive side.

    Args:
        origin: shape [D].
        solutions: shape [n, D].
        units: length of one unit along every weight, shape [D]; see `filter_units`.

    Raises:
        ShapeError: if the shapes do not go together.
        ConfigError: if the displacements span no plane.
    """
    if solutions.ndim != 2 or not solutions.shape[1:] == origin.shape == units.shape:
        raise ShapeError(
            "a plane needs solutions [n, D], an origin [D] and units [D], got "
            f"{tuple(solutions.shape)}, {tuple(origin.shape)} and {tuple(units.shape)}"
        )
    origin, units = origin.double(), units.double()
    displaced = (solutions.double() - origin) / units
    _, lengths, directions = torch.linalg.svd(displaced, full_matrices=False)
    shares = lengths.square() / lengths.square().sum()
    if len(shares) < 2 or not bool(shares[1] > LEAST):
        raise ConfigError(
            "a plane needs two solutions in different directions from the untouched "
            f"network, got {len(solutions)} that span none"
        )
    directions = directions[:2]
    places = displaced @ directions.T
    farthest = places.gather(0, places.abs().argmax(0, keepdim=True))[0]
    directions = directions * farthest.sign()[:, None]
    return Plane(origin, units, directions, float(shares[:2].sum()))


def filter_units(weights: Mapping[str, Tensor]) -> Tensor:
    """Return the norm of the filter that each weight belongs to, shape [D].

    A row of a matrix or kernel is a filter; a vector, such as biases or the scales of a
    normalisation, is one as a whole. Weights of norm 0 have units of 1.

    Args:
        weights: by name, in the order of the D weights.
    """
    return torch.cat([_units(tensor.double()).flatten() for tensor in weights.values()])


def _units(tensor: Tensor) -> Tensor:
    rows = tensor.flatten(1) if tensor.ndim > 1 else tensor.view(1, -1)
    norms = rows.norm(dim=1, keepdim=True)
    return torch.where(norms > 0, norms, 1.0).expand_as(rows)


def axes(coordinates: Tensor, side: int, margin: float) -> Tensor:
    """Return the places of a grid along both axes, shape [2, side].

    It holds the origin and all coordinates, and goes beyond them.

    Args:
        coordinates: of points, shape [n, 2].
        side: places along an axis, 2 or more.
        margin: how far it goes beyond, as a share of the extent.
    """
    held = torch.cat([coordinates, torch.zeros(1, 2).to(coordinates)])
    low, high = held.amin(0), held.amax(0)
    beyond = margin * (high - low)
    steps = torch.linspace(0, 1, side).to(low)
    return (low - beyond)[:, None] + steps * (high - low + 2 * beyond)[:, None]
