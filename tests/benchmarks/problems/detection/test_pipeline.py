"""The detection pipeline: training, box head and picture."""

from functools import cache

import pytest
import torch

from benchmarks.data.detection.contract import DETECTION
from benchmarks.problems.choices import Adapted
from benchmarks.problems.detection.pipeline import proposal_recall
from benchmarks.problems.pictured import changed_scenes
from benchmarks.runs.spec import Unit
from metricopt.detection.detections import detections
from metricopt.detection.head import Regions
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline


@cache
def made(loss="cross-entropy"):
    return smoke_pipeline("table6", "untouched", block=loss)


@pytest.fixture
def cells():
    """One pipeline for all tests, made in their cache."""
    return made()


@pytest.mark.parametrize("loss", ["cross-entropy", "ap"])
def test_training_raises_precision_above_that_of_random_weights(loss):
    cells = made(loss)
    observe = cells.whole.observe
    start = cells.theta_spec.begun().head(100)
    regions = Regions(start, observe, targets=observe.targets)
    metric = cells.metric(Unit("ap50"))
    with torch.no_grad():
        before = metric.value(start(regions.batch(slice(None))), regions.targets)
    trained = metric.value(cells.outputs(), cells.splits.observe.targets)
    assert trained > before + 0.1
    assert cells.pretrained.network.back_end.startswith("torchvision, Faster R-CNN")


def test_the_head_detects_what_the_detector_does(cells):
    scenes = cells.whole.test
    head = cells.pretrained.network.head(300)  # as many as the detector keeps
    images = [scenes[place][0] for place in range(4)]
    with torch.no_grad():
        found = detections(head(head.regions(images)))
        expected = cells.pretrained.network.network.eval()(images)
    scores = torch.cat([each["scores"] for each in expected])
    torch.testing.assert_close(found.score, scores, atol=1e-5, rtol=1e-4)
    assert len(scores) > 4


def test_proposals_find_more_objects_the_more_there_are(cells):
    outputs, truths = cells.outputs(), cells.splits.observe.targets
    found = [proposal_recall(outputs[:, :count], truths) for count in (1, 10, 100)]
    assert 0 <= found[0] <= found[1] <= found[2] <= 1
    assert found[2] > found[0]


def test_the_picture_holds_images_that_changed(cells):
    generator = torch.Generator().manual_seed(0)
    phi = 2 * torch.randn(1, 128, generator=generator)
    notes = cells.pictured(Adapted(phi))
    changed, every = notes["scene_counts"]
    assert every == len(cells.whole.test)
    assert len(notes["scenes"]) == min(4, changed)
    assert all(scene["before"] != scene["after"] for scene in notes["scenes"])


def test_nothing_changes_between_equal_outputs(cells):
    outputs = cells.judged("test").outputs
    notes = changed_scenes(
        cells.whole.test, DETECTION.get("drawn-cells").classes, outputs, outputs
    )
    assert notes == {"scenes": [], "scene_counts": [0, 24]}
