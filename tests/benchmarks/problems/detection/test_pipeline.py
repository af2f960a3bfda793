"""The detection pipeline: training, released weights, adapter, tasks and judging."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from benchmarks.arms.contract import run_arm
from benchmarks.problems.choices import Adapted
from benchmarks.problems.contract import SealedError
from benchmarks.problems.detection.pictured import pictured
from benchmarks.problems.detection.settings import DetectorBackbone
from benchmarks.problems.detection.theta import find_theta, fresh, proposal_recall
from benchmarks.problems.pretrained.theta import is_ready, release_theta, trained_here
from benchmarks.runs.spec import Unit
from metricopt.detection.detections import detections
from metricopt.detection.head import Regions
from metricopt.errors import ConfigError
from tests.benchmarks.problems.detection.detection_cases import pipeline_of, spec_of


@cache
def made(block):
    return pipeline_of(block=block)


@pytest.fixture
def cells():
    """One pipeline for all tests, made in their cache."""
    return made("cross-entropy")


@pytest.mark.parametrize("block", ["cross-entropy", "ap"])
def test_training_raises_precision_above_that_of_random_weights(block):
    cells = made(block)
    observe = cells.problem.observe
    start = fresh(cells.theta_spec, 2).head(100)
    regions = Regions(start, observe, targets=observe.targets)
    metric = cells.metric(Unit("ap50"))
    with torch.no_grad():
        before = metric.value(start(regions.batch(slice(None))), regions.targets)
    trained = metric.value(cells.outputs(), cells.splits.observe.targets)
    assert trained > before + 0.1
    assert cells.pretrained.detector.back_end.startswith("torchvision, Faster R-CNN")


def test_the_head_detects_what_the_detector_does(cells):
    scenes = cells.problem.test
    head = cells.pretrained.detector.head(300)  # as many as the detector keeps
    images = [scenes[place][0] for place in range(4)]
    with torch.no_grad():
        found = detections(head(head.regions(images)))
        expected = cells.pretrained.detector.network.eval()(images)
    scores = torch.cat([each["scores"] for each in expected])
    torch.testing.assert_close(found.score, scores, atol=1e-5, rtol=1e-4)
    assert len(scores) > 4


def test_a_query_costs_what_the_metric_says(cells):
    metric = cells.metric(Unit("ap50"))
    task = cells.task(metric)
    cost = task.observe(torch.zeros(1, task.size)).item()
    value = metric.value(cells.outputs(), cells.splits.observe.targets)
    assert cost == pytest.approx(1 - value, abs=1e-6)
    assert task.queries == 1
    assert task.statistics.kind.names() == ("detections",)
    assert set(task.portfolio) == {"cross-entropy", "ap"}
    assert cells.adapter.is_cut
    assert cells.adapter.size == 128


def test_a_detector_is_released_with_its_precision(cells, monkeypatch, tmp_path):
    spec = cells.theta_spec
    facts = trained_here(spec).facts
    path = release_theta(spec)
    assert path.name == "drawn-cells-tiny-cross-entropy-r0.safetensors"
    assert spec.told(facts) == {
        "ap50 on observe": f"{facts['observe_ap50']:.4f}",
        "proposal recall at 100": f"{facts['observe_proposal_recall']:.4f}",
    }
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
    assert is_ready(spec)
    assert find_theta(spec, 2).digest == cells.pretrained.digest


def test_training_again_gives_the_same_detector(cells, monkeypatch, tmp_path):
    """Sampling of regions, too, depends on the seed alone."""
    spec = trained_with(cells.theta_spec)
    one = trained_here(spec)
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
    torch.manual_seed(123)
    other = trained_here(spec)
    assert one.facts["weights"] == other.facts["weights"]


def trained_with(spec, **changes):
    training = replace(spec.backbone.training, epochs=1, **changes)
    return replace(spec, backbone=replace(spec.backbone, training=training))


def test_frozen_modules_keep_their_weights(cells):
    spec = trained_with(cells.theta_spec, frozen=("0",))
    start, trained = fresh(spec, 2).state_dict(), trained_here(spec).tensors
    kept, moved = "network.backbone.0.weight", "network.backbone.2.weight"
    assert torch.equal(trained[kept], start[kept].half())
    assert not torch.equal(trained[moved], start[moved].half())


def test_an_unknown_loss_is_named(cells):
    backbone = cells.settings.backbone
    with pytest.raises(ConfigError, match="one of 'cross-entropy', 'ap', got 'focal'"):
        DetectorBackbone("tiny", backbone.base, "focal", backbone.training, 1)


def test_proposals_find_more_objects_the_more_there_are(cells):
    outputs, truths = cells.outputs(), cells.splits.observe.targets
    found = [proposal_recall(outputs[:, :count], truths) for count in (1, 10, 100)]
    assert 0 <= found[0] <= found[1] <= found[2] <= 1
    assert found[2] > found[0]


def test_the_test_split_is_sealed(cells):
    with cells.sealed(), pytest.raises(SealedError):
        cells.evaluate([], "test", {})


def test_metricopt_on_outputs_runs_and_is_judged_by_all_metrics(cells):
    spec = spec_of("metricopt-outputs")
    chosen = run_arm(spec, cells)
    (values,) = cells.evaluate([chosen.choice], "test", cells.metrics(spec.metrics))
    assert list(values) == [
        *("ap50", "ap50-area", "ap50-coco", "ap50(label=1)", "ap50(label=2)")
    ]
    assert all(0 <= v <= 1 for row in values.values() for v in row.tolist())
    by_class = (values["ap50(label=1)"] + values["ap50(label=2)"]) / 2
    torch.testing.assert_close(values["ap50"], by_class)


def test_the_picture_holds_images_that_changed(cells):
    generator = torch.Generator().manual_seed(0)
    phi = 2 * torch.randn(1, 128, generator=generator)
    notes = cells.pictured(Adapted(phi))
    changed, every = notes["scene_counts"]
    assert every == len(cells.problem.test)
    assert len(notes["scenes"]) == min(4, changed)
    assert all(scene["before"] != scene["after"] for scene in notes["scenes"])


def test_nothing_changes_between_equal_outputs(cells):
    outputs = cells._untouched("test")
    notes = pictured(cells.problem.test, cells.problem.classes, outputs, outputs)
    assert notes == {"scenes": [], "scene_counts": [0, 24]}


def test_a_forecast_needs_no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path))
    told = pipeline_of().forecast()
    assert told.operations > 1e9
    assert told.feature_bytes > 84 * 24 * 32 * 4
