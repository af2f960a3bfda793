"""Statistics of poses: what metrics are linear in, exact, weighted and smooth."""

import pytest
import torch

from metricopt.metrics.poses import CorrectKeypoints
from metricopt.statistics.poses import WITHIN, PoseStatistics, mean_places
from tests.metricopt.metrics.test_poses import people

KIND = PoseStatistics()


def test_the_share_of_correct_key_points_is_one_of_them():
    maps, poses = people()
    found = KIND.exact(maps, poses)
    at = WITHIN.index(0.2)
    expected = CorrectKeypoints().values(maps, poses)
    assert found["mean rates"][:, at].tolist() == pytest.approx(expected.tolist())
    assert found["rates"].shape == (2, 17 * len(WITHIN))
    assert found["similarities"].shape == (2, 10)


def test_weights_leave_people_out():
    maps, poses = people()
    weights = torch.zeros(2, len(poses))
    weights[:, :10] = 1
    weighted, alone = (
        KIND.exact(maps, poses, weights),
        KIND.exact(maps[:, :10], poses[:10]),
    )
    for name, values in alone.items():
        torch.testing.assert_close(weighted[name], values)


def test_smooth_ones_are_near_and_have_a_gradient():
    maps, poses = people()
    maps = maps.requires_grad_()
    exact, smooth = KIND.exact(maps, poses), KIND.smooth(maps, poses)
    assert (exact["mean rates"] - smooth["mean rates"]).abs().max() < 0.3
    (gradient,) = torch.autograd.grad(smooth["mean rates"].sum(), maps)
    assert gradient.isfinite().all() and gradient.abs().max() > 0


def test_the_mean_place_of_a_peak_is_the_peak():
    maps = torch.zeros(1, 1, 9, 7)
    maps[0, 0, 4, 3] = 1.0
    assert mean_places(maps)[0, 0].tolist() == pytest.approx([3.0, 4.0], abs=1e-3)


def test_it_suits_heat_maps_of_people_alone():
    maps, poses = people()
    assert KIND.suits(maps, poses)
    assert not KIND.suits(maps, torch.zeros(len(poses)))
    assert KIND.sizes(poses) == {"joints": int(poses[:, :-1, 2].sum()), "persons": 30}
