"""Packed poses, heat maps of joints, and what is read of them."""

import math

import pytest
import torch

from metricopt.errors import DataError, ShapeError
from metricopt.structured.poses import (
    are_poses,
    check_maps,
    decoded,
    distances,
    labelled,
    pack_poses,
    similarities,
    target_maps,
)


def one_pose(x=5.0, y=9.0, known=1.0):
    joints = torch.tensor([[[x, y, known], [2.0, 3.0, 1.0]]])
    return pack_poses(joints, torch.tensor([10.0]), torch.tensor([200.0]))


def test_a_target_map_is_a_gaussian_around_the_nearest_cell():
    maps, counts = target_maps(one_pose(x=5.4, y=8.6), 64, 48)
    assert maps.shape == (1, 2, 64, 48) and counts.all()
    for row, column in ((9, 5), (9, 6), (12, 7), (0, 47)):
        apart = (row - 9) ** 2 + (column - 5) ** 2
        # A deviation of 2 of 64 cells.
        assert maps[0, 0, row, column].item() == pytest.approx(
            math.exp(-apart / 8), abs=1e-6
        )


@pytest.mark.parametrize("place", [{"known": 0.0}, {"x": -20.0}, {"y": 90.0}])
def test_joints_that_are_unknown_or_outside_do_not_count(place):
    maps, counts = target_maps(one_pose(**place), 64, 48)
    assert counts.tolist() == [[False, True]]
    assert maps[0, 0].abs().max() == 0


def test_maps_are_read_at_the_largest_cell_and_a_quarter_towards_the_next():
    maps = torch.zeros(1, 2, 8, 6)
    maps[0, 0, 4, 3], maps[0, 0, 4, 2], maps[0, 0, 5, 3] = 1.0, 0.5, 0.3
    maps[0, 1, 0, 0] = 0.7  # at the edge
    points, values = decoded(maps)
    assert points.tolist() == [[[2.75, 4.25], [0.0, 0.0]]]
    assert values.tolist() == [[1.0, pytest.approx(0.7)]]


def test_what_is_drawn_is_read_again():
    generator = torch.Generator().manual_seed(0)
    joints = torch.cat(
        [4 + 20 * torch.rand(9, 5, 2, generator=generator), torch.ones(9, 5, 1)], 2
    )
    poses = pack_poses(joints, torch.ones(9), torch.ones(9))
    points, _ = decoded(target_maps(poses, 32, 32)[0])
    assert (points - joints[..., :2]).abs().max() <= 0.76


def test_distances_and_similarities_are_the_formulas():
    poses = one_pose()
    points = torch.tensor([[[[8.0, 13.0], [2.0, 3.0]]]])
    assert distances(points, poses)[0, 0].tolist() == pytest.approx([0.5, 0.0])
    sigmas = torch.tensor([0.1, 0.2])
    expected = (math.exp(-25 / (2 * 0.2**2 * 200)) + 1) / 2
    assert similarities(points, poses, sigmas).item() == pytest.approx(expected)


def test_poses_that_are_none_are_refused():
    good = torch.zeros(3, 4, 3), torch.ones(3), torch.ones(3)
    assert are_poses(pack_poses(*good)) and not labelled(pack_poses(*good)).any()
    assert not are_poses(torch.zeros(3, 4, 2)) and not are_poses([1, 2])
    with pytest.raises(ShapeError, match=r"joints \[N, J, 3\]"):
        pack_poses(torch.zeros(3, 4, 2), *good[1:])
    with pytest.raises(DataError, match="finite"):
        pack_poses(torch.full((3, 4, 3), torch.nan), *good[1:])
    with pytest.raises(DataError, match="must be 1 or 0"):
        pack_poses(torch.full((3, 4, 3), 2.0), *good[1:])
    with pytest.raises(DataError, match="must be positive"):
        pack_poses(good[0], torch.zeros(3), good[2])
    with pytest.raises(ShapeError, match="of the 4 joints of the poses, got 5"):
        check_maps(torch.zeros(3, 5, 8, 8), pack_poses(*good))
