"""detectron2 behind the contract, where it is installed; a sentence where it is not."""

import importlib.util
import sys

import pytest
import torch
import torchvision
from torch.nn.functional import cross_entropy

from benchmarks.networks.detection.contract import DETECTORS, build_detector
from benchmarks.networks.detection.detectron2_back_end import check_installed
from benchmarks.problems.pretrained.base_weights import assign
from metricopt import FiLM
from metricopt.detection.detections import Kept, detections
from metricopt.detection.region_outputs import region_outputs
from metricopt.errors import ConfigError
from metricopt.reading.callables import make_metric

IS_THERE = importlib.util.find_spec("detectron2") is not None
needs_detectron2 = pytest.mark.skipif(not IS_THERE, reason="detectron2 not installed")

# detectron2 uses what torch, numpy and setuptools are about to drop.
pytestmark = pytest.mark.filterwarnings("ignore")


def scene(count=2):
    generator = torch.Generator().manual_seed(1)
    images = [torch.rand(3, 64, 96, generator=generator) for _ in range(count)]
    boxes = torch.tensor([[5.0, 5, 30, 40], [40, 20, 90, 60]])
    target = {"boxes": boxes, "labels": torch.tensor([1, 3])}
    empty = {"boxes": boxes[:0], "labels": torch.tensor([], dtype=torch.int64)}
    return images, [target, empty][:count]


def test_the_detectors_are_known_without_it():
    assert {"r50-c4", "r50-c4-narrow"} <= set(DETECTORS)


@pytest.mark.skipif(IS_THERE, reason="detectron2 is installed")
def test_without_it_the_command_is_named():
    with pytest.raises(ConfigError, match=r"needs detectron2; .* --no-build-isolation"):
        build_detector("r50-c4", 20, 0)


def test_one_that_cannot_be_imported_is_told_apart(monkeypatch, tmp_path):
    (tmp_path / "detectron2").mkdir()
    (tmp_path / "detectron2" / "__init__.py").write_text("raise OSError('no symbol')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "detectron2"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"cannot be imported: no symbol; build it"):
        check_installed()


@needs_detectron2
def test_the_parts_of_the_loss_are_those_of_detectron2():
    from detectron2.structures import Boxes, Instances
    from detectron2.utils.events import EventStorage

    detector = build_detector("r50-c4-narrow", 3, seed=0).train()
    images, targets = scene()
    seen, scaled = detector.transform(images, targets)
    given = [
        {
            "image": image,
            "instances": Instances(
                size, gt_boxes=Boxes(t["boxes"]), gt_classes=t["labels"] - 1
            ),
        }
        for image, size, t in zip(seen.tensors, seen.image_sizes, scaled, strict=True)
    ]
    torch.manual_seed(2)
    detector.transform(images, targets)  # which draws a size, too
    with EventStorage():
        expected = detector.network(given)
    torch.manual_seed(2)
    logits, labels, others = detector((images, targets))
    torch.testing.assert_close(cross_entropy(logits, labels), expected.pop("loss_cls"))
    torch.testing.assert_close(others, sum(expected.values()))
    assert set(labels.tolist()) == {0, 1, 3}


@needs_detectron2
def test_the_head_detects_what_detectron2_does():
    detector = build_detector("r50-c4-narrow", 3, seed=0).eval()
    network = detector.network
    network.roi_heads.box_predictor.test_score_thresh = 0.05
    for weight in network.roi_heads.box_predictor.parameters():
        torch.nn.init.normal_(weight, std=0.01)
    images, _ = scene(1)
    head = detector.head(1_000)
    with torch.no_grad():
        found = detections(head(head.regions(images)), Kept())
        (expected,) = network.inference(
            [{"image": detector.transform(images)[0].tensors[0]}], do_postprocess=False
        )
    assert len(found.score) == len(expected.scores) > 5
    torch.testing.assert_close(found.score, expected.scores, atol=1e-5, rtol=1e-4)
    one, other = found.box.sum(1).sort()[0], expected.pred_boxes.tensor.sum(1).sort()[0]
    torch.testing.assert_close(one, other, atol=0.05, rtol=1e-3)
    kinds = (expected.pred_classes + 1).bincount()
    assert torch.equal(found.label.bincount(), kinds)


@needs_detectron2
def test_weights_of_torchvision_fit_the_trunk():
    detector = build_detector("r50-c4", 20, seed=0)
    assert detector.back_end == "detectron2, Faster R-CNN R50-C4"
    state = torchvision.models.resnet50(weights=None).state_dict()
    trunk = detector.trunk
    assign(trunk, state, "file")
    own = detector.network.roi_heads.res5[2].conv3
    assert torch.equal(own.weight, state["layer4.2.conv3.weight"])
    shortcut = detector.network.backbone.res2[0].shortcut.norm
    assert torch.equal(shortcut.weight, state["layer1.0.downsample.1.weight"])
    assert {n for n in state if "tracked" not in n and "fc." not in n} == set(
        trunk.state_dict()
    )


@needs_detectron2
def test_film_stands_on_the_means_of_regions():
    detector = build_detector("r50-c4-narrow", 3, seed=0)
    images, _ = scene(1)
    head = detector.head(20)
    regions = head.regions(images)
    adapter = FiLM(head, regions, sites=head.sites, size=16)
    assert adapter.is_cut
    (site,) = adapter.sites
    assert site.channels == regions.shape[-1] - 8
    with torch.no_grad():
        outputs = region_outputs(head(regions))
    found = outputs.proposals[0][outputs.present[0]]
    assert len(found) == 20


def test_either_back_end_has_the_same_metric_for_the_same_boxes():
    """What a detector says is packed alike, so that one metric judges both."""
    names = ["tiny", *(["r50-c4-narrow"] if IS_THERE else [])]
    shapes = set()
    for name in names:
        head = build_detector(name, 3, seed=0).head(10)
        with torch.no_grad():
            outputs = head(head.regions(scene(1)[0]))
        shapes.add(outputs.shape)
        metric = make_metric("ap50")
        truths = torch.zeros(1, 1, 6)
        truths[0, 0] = torch.tensor([5.0, 5, 30, 40, 1, 0])
        assert 0 <= metric.value(outputs, truths) <= 1
    assert shapes == {(1, 10, 21)}
