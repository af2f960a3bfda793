"""Averages of precision against torchmetrics, which calls the code of COCO."""

import pytest
import torch

from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections
from metricopt.detection.matching import matched
from metricopt.detection.packed import pack_truths
from tests.metricopt.drawn import seeded

torchmetrics = pytest.importorskip("torchmetrics.detection")
CLASSES, IMAGES = 3, 12
HUNDRED = [step / 100 for step in range(101)]
FINE = [step / 20_000 for step in range(20_001)]


def scenes(seed):
    """Objects, and detections near some of them."""
    generator = seeded(seed)
    found, wanted = [], []
    for _ in range(IMAGES):
        corner = torch.rand(5, 2, generator=generator) * 60
        boxes = torch.cat([corner, corner + 20], 1)
        labels = torch.randint(1, CLASSES + 1, (5,), generator=generator)
        wanted.append({"boxes": boxes, "labels": labels})
        moved = boxes.repeat(2, 1) + 4 * torch.randn(10, 4, generator=generator)
        score = torch.rand(10, generator=generator)
        found.append({"boxes": moved, "labels": labels.repeat(2), "scores": score})
    return found, wanted


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "recalls", "near"), [("coco", HUNDRED, 1e-6), ("area", FINE, 1e-4)]
)
def test_averages_are_those_of_torchmetrics(seed, name, recalls, near):
    found, wanted = scenes(seed)
    judge = torchmetrics.MeanAveragePrecision(
        iou_thresholds=[0.5], rec_thresholds=recalls
    )
    judge.update(found, wanted)
    truths = pack_truths(wanted)
    image = torch.arange(IMAGES).repeat_interleave(10)
    label, score, box = (
        torch.cat([each[part] for each in found])
        for part in ("labels", "scores", "boxes")
    )
    every = Detections(image, label, score, box, torch.zeros_like(image))
    flags = matched(every, truths, rule="coco")
    weights = torch.ones(1, IMAGES, dtype=torch.float64)
    objects = objects_of(truths, CLASSES, weights)
    ours = curves(every, flags, weights, objects, rows=1)
    average = float(getattr(ours, name)().mean())
    assert 0.05 < average < 0.95
    assert average == pytest.approx(float(judge.compute()["map_50"]), abs=near)
