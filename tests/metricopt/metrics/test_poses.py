"""Metrics of poses against loops, and the evaluation code of COCO."""

import contextlib
import io

import pytest
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from metricopt.errors import ConfigError, DataError, MetricError, ShapeError
from metricopt.metrics.base import METRICS
from metricopt.metrics.poses import COCO as COCO_SIGMAS
from metricopt.metrics.poses import CorrectKeypoints, SimilarityAP, sigmas_of
from metricopt.structured.poses import decoded, pack_poses, target_maps


def people(count=30, joints=17, seed=0):
    """Noisy maps [2, N, J, 24, 18] and packed poses; some joints are not labelled."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(count, joints, 2, generator=generator) * torch.tensor([17, 23])
    known = (torch.rand(count, joints, 1, generator=generator) < 0.8).float()
    known[:, 0] = 1
    lengths = 6 + 8 * torch.rand(count, generator=generator)
    poses = pack_poses(torch.cat([places, known], 2), lengths, 30 * lengths)
    maps, _ = target_maps(poses, 24, 18)
    noise = torch.randn(2, *maps.shape, generator=generator)
    each = torch.rand(count, 1, 1, 1, generator=generator)
    return maps + each * torch.tensor([0.3, 0.8]).view(2, 1, 1, 1, 1) * noise, poses


def test_the_share_of_correct_key_points_is_a_loop():
    maps, poses = people()
    for row in maps:
        points, _ = decoded(row)
        near = [
            ((points[i, j] - poses[i, j, :2]).norm() / poses[i, -1, 0]).item() < 0.2
            for i in range(len(poses))
            for j in range(17)
            if poses[i, j, 2]
        ]
        expected = sum(near) / len(near)
        assert 0 < expected < 1
        assert CorrectKeypoints().value(row, poses) == pytest.approx(expected, abs=1e-9)


def by_pycocotools(maps, poses):
    """Average precision of the evaluation code of COCO."""
    points, sure = decoded(maps)
    truths = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "p"}]}
    found = []
    for place, pose in enumerate(poses, start=1):
        own = points[place - 1]
        truths["images"].append({"id": place})
        marks = torch.cat([pose[:-1, :2], 2 * pose[:-1, 2:]], 1).flatten().tolist()
        one = {"id": place, "image_id": place, "category_id": 1, "iscrowd": 0}
        truths["annotations"].append(
            one
            | {
                "keypoints": marks,
                "num_keypoints": int(pose[:-1, 2].sum()),
                "area": float(pose[-1, 1]),
                "bbox": [0, 0, 18, 24],
            }
        )
        seen = torch.cat([own, torch.ones(len(own), 1)], 1).flatten().tolist()
        score = float(sure[place - 1].mean())
        found.append(one | {"keypoints": seen, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        known = COCO()
        known.dataset = truths
        known.createIndex()
        judge = COCOeval(known, known.loadRes(found), "keypoints")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge.stats[0]


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_that_of_coco(seed):
    maps, poses = people(seed=seed)
    metric = SimilarityAP()
    expected = [by_pycocotools(row, poses) for row in maps]
    assert expected[0] > expected[1] > 0.01
    assert metric.values(maps, poses).tolist() == pytest.approx(expected, abs=1e-6)
    assert metric.value(maps[0], poses) == metric.values(maps, poses)[0].item()


def test_right_maps_are_best():
    _, poses = people()
    right, _ = target_maps(poses, 24, 18)
    assert CorrectKeypoints().value(right, poses) > 0.95
    assert SimilarityAP().value(right, poses) > 0.95
    assert CorrectKeypoints().value(torch.zeros_like(right), poses) < 0.1
    assert {"pck", "oks-ap"} <= set(METRICS)


@pytest.mark.parametrize("metric", [CorrectKeypoints(), SimilarityAP()])
def test_wrong_input_is_refused(metric):
    maps, poses = people()
    with pytest.raises(DataError, match="poses as `pack_poses` gives them"):
        metric.value(maps[0], torch.zeros(len(poses)))
    with pytest.raises(ShapeError, match="of the 17 joints of the poses, got 16"):
        metric.value(maps[0, :, 1:], poses)
    with pytest.raises(ShapeError, match=r"needs outputs \[N, J, H, W\]"):
        metric.value(maps[0, 0], poses)
    with pytest.raises(MetricError, match="NaN"):
        metric.value(maps[0] * torch.nan, poses)
    bare = poses.clone()
    bare[:, :-1, 2] = 0
    with pytest.raises(DataError, match="needs a labelled joint, got none"):
        metric.value(maps[0], bare)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="within must be positive, got 0"):
        CorrectKeypoints(0)
    with pytest.raises(ConfigError, match="expected 3 sigmas, one a joint, got 17"):
        sigmas_of(3, COCO_SIGMAS)
    with pytest.raises(ConfigError, match="known of 14 or 17 joints, got 3"):
        sigmas_of(3)
