"""Planes through solutions: coordinates, distances, units, grids; worked by hand."""

import pytest
import torch

from benchmarks.problems.planes import axes, filter_units, principal_plane
from metricopt.errors import ConfigError, ShapeError

ORIGIN = torch.tensor([1.0, 2.0, 3.0])
ONES = torch.ones(3)


def test_two_solutions_give_back_their_own_coordinates():
    solutions = ORIGIN + torch.tensor([[4.0, 0.0, 0.0], [0.0, 0.0, -2.0]])
    plane = principal_plane(ORIGIN, solutions, ONES)
    # The longer displacement is the first direction; the farthest is positive.
    expected = torch.tensor([[4.0, 0.0], [0.0, 2.0]]).double()
    torch.testing.assert_close(plane.coordinates(solutions), expected)
    torch.testing.assert_close(plane.at(expected), solutions.double())
    torch.testing.assert_close(plane.distances(solutions), torch.zeros(2).double())
    assert plane.share == pytest.approx(1.0)
    assert plane.coordinates(ORIGIN[None]).tolist() == [[0.0, 0.0]]


def test_what_does_not_lie_on_it_is_projected_and_its_distance_is_told():
    moved = torch.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    plane = principal_plane(ORIGIN, ORIGIN + moved, ONES)
    expected = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]).double()
    torch.testing.assert_close(plane.coordinates(ORIGIN + moved), expected)
    distances = plane.distances(ORIGIN + moved)
    torch.testing.assert_close(distances, torch.tensor([0.0, 0.0, 1.0]).double())
    assert plane.share == pytest.approx((9 + 4) / (9 + 4 + 1))


def test_lengths_are_in_units_and_points_in_weights():
    units = torch.tensor([2.0, 1.0, 0.5])
    solutions = ORIGIN + torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    plane = principal_plane(ORIGIN, solutions, units)
    # 3 / 0.5 = 6 units, and 2 / 2 = 1.
    expected = torch.tensor([[0.0, 1.0], [6.0, 0.0]]).double()
    torch.testing.assert_close(plane.coordinates(solutions), expected)
    torch.testing.assert_close(plane.at(expected), solutions.double())


def test_scaling_a_filter_changes_no_coordinate():
    generator = torch.Generator().manual_seed(0)
    origin, *solutions = torch.randn(4, 2, 3, generator=generator)
    scales = torch.tensor([[5.0], [0.1]])

    def places(scale):
        units = filter_units({"kernel": scale * origin})
        ends = torch.stack([(scale * s).flatten() for s in solutions])
        found = principal_plane((scale * origin).flatten(), ends, units)
        return found.coordinates(ends)

    torch.testing.assert_close(places(scales), places(torch.ones(2, 1)))


def test_the_unit_of_a_weight_is_the_norm_of_its_filter():
    weights = {
        "kernel": torch.tensor([[[3.0], [4.0]], [[0.0], [0.0]]]),
        "bias": torch.tensor([1.0, 2.0, 2.0]),
    }
    expected = [5.0, 5.0, 1.0, 1.0, 3.0, 3.0, 3.0]
    assert filter_units(weights).tolist() == expected


def test_solutions_that_span_no_plane_are_refused():
    line = ORIGIN + torch.tensor([[1.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    for solutions in (line, line[:1], ORIGIN[None].repeat(3, 1)):
        with pytest.raises(ConfigError, match="two solutions in different directions"):
            principal_plane(ORIGIN, solutions, ONES)


def test_shapes_that_do_not_go_together_are_refused():
    with pytest.raises(ShapeError, match=r"got \(2, 4\), \(3,\) and \(3,\)"):
        principal_plane(ORIGIN, torch.ones(2, 4), ONES)


def test_the_grid_holds_origin_and_solutions_with_a_margin():
    places = torch.tensor([[4.0, -1.0], [2.0, 1.0]])
    found = axes(places, 3, 0.25)
    # 0 to 4, and -1 to 1, each with a quarter of its extent beyond.
    assert found.tolist() == [[-1.0, 2.0, 5.0], [-1.5, 0.0, 1.5]]
