"""Poses in one tensor, and the heat maps that a network answers with.

A pose is the joints of a person. Coordinates are in cells of the heat maps: column x,
row y, 0 at the middle of the first cell. N poses of J joints are packed in one tensor
[N, J + 1, 3], in whose last row the reference length and the area stand.
"""

from typing import Any

import torch
from torch import Tensor

from metricopt.errors import DataError, ShapeError

SPREAD = 1 / 32
"""Deviation of the Gaussian of a target map, as a share of the height of the map."""
NARROWEST = 1.75
"""Least deviation in cells: a narrower Gaussian is learned slowly in small maps."""
QUARTER = 0.25
"""How far a joint is moved from the largest cell towards the larger neighbour."""
REACH = 3
"""Deviations from which on a Gaussian is nothing."""
SMALL = 1e-12


def pack_poses(joints: Tensor, references: Tensor, areas: Tensor) -> Tensor:
    """Return poses in one tensor, float32, shape [N, J + 1, 3].

    Args:
        joints: x, y and whether the joint is labelled, 1 or 0, shape [N, J, 3].
        references: length that distances are compared with, shape [N], positive.
        areas: area of the person, shape [N], positive.

    Raises:
        ShapeError: if the shapes do not go together.
        DataError: if a number is not finite, a label is neither 0 nor 1, or a reference
            or an area is not positive.
    """
    count = len(joints)
    wanted = joints.ndim == 3 and joints.shape[2] == 3
    if not wanted or references.shape != (count,) or areas.shape != (count,):
        raise ShapeError(
            "poses need joints [N, J, 3], references [N] and areas [N], got "
            f"{list(joints.shape)}, {list(references.shape)} and {list(areas.shape)}"
        )
    last = torch.stack([references, areas, torch.ones_like(areas)], 1)
    packed = torch.cat([joints, last[:, None]], 1).float()
    if not bool(packed.isfinite().all()):
        raise DataError("poses must be finite numbers, got nan or infinity")
    if not bool(((joints[..., 2] == 0) | (joints[..., 2] == 1)).all()):
        raise DataError("whether a joint is labelled must be 1 or 0")
    if not bool((last > 0).all()):
        raise DataError("references and areas of poses must be positive")
    return packed


def are_poses(targets: Any) -> bool:
    """Return whether targets are packed poses [N, J + 1, 3]."""
    if not isinstance(targets, Tensor) or not targets.is_floating_point():
        return False
    return targets.ndim == 3 and targets.shape[1] > 1 and targets.shape[2] == 3


def labelled(poses: Tensor) -> Tensor:
    """Return which joints of packed poses [..., J + 1, 3] are labelled, [..., J]."""
    return poses[..., :-1, 2] > 0


def references(poses: Tensor) -> Tensor:
    """Return the reference lengths of packed poses [..., J + 1, 3], shape [...]."""
    return poses[..., -1, 0]


def areas(poses: Tensor) -> Tensor:
    """Return the areas of packed poses [..., J + 1, 3], shape [...]."""
    return poses[..., -1, 1]


def check_maps(maps: Tensor, poses: Tensor) -> None:
    """Check that heat maps [..., J, H, W] are of the joints of packed poses.

    Raises:
        ShapeError: if they are of another number of joints.
    """
    if maps.shape[-3] != poses.shape[-2] - 1:
        raise ShapeError(
            f"heat maps must be of the {poses.shape[-2] - 1} joints of the poses, got "
            f"{maps.shape[-3]}"
        )


def target_maps(poses: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the heat maps of packed poses, and which of them count.

    A map is a Gaussian of height 1 around the cell of the joint. Joints that are not
    labelled, or whose Gaussian is outside of the map, do not count.

    Args:
        poses: packed, shape [..., J + 1, 3].
        height: of the maps, in cells.
        width: of the maps, in cells.

    Returns:
        Maps [..., J, H, W], float32, and whether they count, [..., J].

    Source: Xiao et al., ECCV 2018: a deviation of 2 of 64 cells. Differs: at least
        1.75 cells.
    """
    deviation = max(SPREAD * height, NARROWEST)
    column = torch.arange(width, device=poses.device)
    row = torch.arange(height, device=poses.device)
    # Of the nearest cell, as in the published code.
    x, y = (poses[..., :-1, place].add(0.5).floor() for place in (0, 1))
    scale = -0.5 / deviation**2
    across = (scale * (column - x[..., None]).square()).exp()
    down = (scale * (row - y[..., None]).square()).exp()
    reach = REACH * deviation
    near = (x > -reach) & (x < width - 1 + reach)
    near &= (y > -reach) & (y < height - 1 + reach)
    counts = labelled(poses) & near
    return down[..., :, None] * across[..., None, :] * counts[..., None, None], counts


def decoded(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Return where heat maps see joints, and how sure they are.

    The place is the largest cell, moved by a quarter of a cell towards the larger
    neighbour in either direction, unless it is in the first two or in the last row or
    column.

    Args:
        maps: shape [..., J, H, W].

    Returns:
        Points x, y [..., J, 2], and the largest values [..., J].

    Source: Xiao et al., ECCV 2018, and its published code.
    """
    height, width = maps.shape[-2:]
    flat = maps.flatten(-2)
    values, places = flat.max(-1)
    row, column = places // width, places % width
    inside = (column > 1) & (column < width - 1) & (row > 1) & (row < height - 1)

    def towards(step: int) -> Tensor:
        sides = (
            flat.gather(
                -1, (places + sign * step).clamp(0, height * width - 1)[..., None]
            )
            for sign in (1, -1)
        )
        after, before = sides
        return QUARTER * (after - before)[..., 0].sign() * inside

    points = torch.stack([column + towards(1), row + towards(width)], -1)
    return points.to(maps.dtype), values


def distances(points: Tensor, poses: Tensor) -> Tensor:
    """Return distances of points from joints, in reference lengths, float64.

    Args:
        points: shape [B, N, J, 2].
        poses: packed, shape [N, J + 1, 3].

    Returns:
        Shape [B, N, J]; meaningless where a joint is not labelled.
    """
    apart = points.double() - poses[:, :-1, :2].double()
    length = apart.square().sum(-1).add(SMALL**2).sqrt()
    found: Tensor = length / references(poses).double()[:, None]
    return found


def similarities(points: Tensor, poses: Tensor, sigmas: Tensor) -> Tensor:
    """Return the object key point similarity of every person, float64, [B, N].

    Args:
        points: shape [B, N, J, 2].
        poses: packed, shape [N, J + 1, 3]; a person without a labelled joint has a
            similarity of 0.
        sigmas: spread of every joint, shape [J].

    Source: Lin et al., ECCV 2014, and its evaluation code.
    """
    known = labelled(poses).double()
    apart = (points.double() - poses[:, :-1, :2].double()).square().sum(-1)
    variance = (2 * sigmas.to(apart)).square()
    area = areas(poses).double()[:, None] + torch.finfo(torch.float64).eps
    each = (-apart / (2 * variance * area)).exp()
    found: Tensor = (each * known).sum(-1) / known.sum(-1).clamp_min(1)
    return found
