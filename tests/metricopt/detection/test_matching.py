"""Hits and false alarms by the rules of two benchmarks, on cases made by hand."""

import contextlib
import io

import pytest
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchvision.ops import batched_nms

from metricopt.detection import DetectionLoss, detections
from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections, matched, suppressed
from metricopt.detection.region_outputs import RegionOutputs
from metricopt.detection.truths import pack_truths, single
from metricopt.errors import DataError
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded

BOX = [0.0, 0.0, 10.0, 10.0]


def moved(across):
    """The box, moved; 5 pixels leave an overlap of 1/3, and 10/3 of 1/2."""
    return [across, 0.0, 10.0 + across, 10.0]


def found(*each):
    """Detections (image, label, score, box), by image."""
    image, label, score, box = zip(*each, strict=True)
    return Detections(
        torch.tensor(image),
        torch.tensor(label),
        torch.tensor(score),
        torch.tensor(box),
        torch.arange(len(each)),
    )


def objects(*boxes, difficult=None, labels=None):
    """The objects of one image."""
    return {
        "boxes": torch.tensor(boxes).view(-1, 4),
        "labels": torch.tensor(labels or [1] * len(boxes), dtype=torch.long),
        "difficult": torch.tensor(difficult or [0] * len(boxes)),
    }


SUREST = [objects(BOX)], [(0, 1, 0.5, BOX), (0, 1, 0.9, moved(1.0))]
APART = (
    [objects(BOX), objects(BOX, labels=[2])],
    [(0, 1, 0.9, BOX), (0, 2, 0.8, BOX), (1, 1, 0.7, BOX), (1, 2, 0.6, BOX)],
)
HALF = [objects([0.0, 0.0, 10.0, 20.0])], [(0, 1, 0.9, BOX)]
SECOND = (
    [objects(BOX, moved(2.0))],
    [(0, 1, 0.9, moved(0.5)), (0, 1, 0.8, moved(0.75))],
)
DIFFICULT = (
    [objects(BOX, moved(40.0), difficult=[1, 0])],
    [(0, 1, 0.9, BOX), (0, 1, 0.8, moved(1.0)), (0, 1, 0.7, moved(40.0))],
)


@pytest.mark.parametrize(
    ("case", "voc", "coco"),
    [
        (SUREST, [0, 1], [0, 1]),
        (APART, [1, 0, 0, 1], [1, 0, 0, 1]),
        # An overlap of exactly the threshold, and a second object, count for one rule.
        (HALF, [0], [1]),
        (SECOND, [1, 0], [1, 1]),
        (DIFFICULT, [-1, -1, 1], [-1, -1, 1]),
    ],
    ids=["surest", "apart", "half", "second", "difficult"],
)
def test_hits_and_false_alarms(case, voc, coco):
    truths, seen = pack_truths(case[0]), found(*case[1])
    assert matched(seen, truths, rule="voc").tolist() == voc
    assert matched(seen, truths, rule="coco").tolist() == coco


def test_difficult_objects_are_not_counted():
    truths = pack_truths(DIFFICULT[0])
    assert objects_of(truths, 1, torch.ones(1, 1)).tolist() == [[1.0]]


@pytest.mark.parametrize("rule", ["voc", "coco"])
def test_nothing_found_and_nothing_to_find(rule):
    none, empty = torch.zeros(0, dtype=torch.long), torch.zeros(0)
    nothing = Detections(none, none, empty, torch.zeros(0, 4), none)
    truths = pack_truths([objects(BOX), objects()])
    flags = matched(nothing, truths, rule=rule)
    assert flags.shape == (0,)
    weights = torch.ones(1, 2)
    made = curves(nothing, flags, weights, objects_of(truths, 1, weights), rows=1)
    assert made.eleven_points().tolist() == [[0.0]]
    seen = found((1, 1, 0.9, BOX))
    assert matched(seen, pack_truths([objects(), objects()]), rule=rule).tolist() == [0]


def test_weights_make_folds_and_samples():
    truths = pack_truths([objects(BOX), objects(BOX), objects(BOX)])
    seen = found((0, 1, 0.9, BOX), (1, 1, 0.8, moved(20.0)), (2, 1, 0.7, BOX))
    flags = matched(seen, truths)
    weights = torch.tensor([[1.0, 1, 1], [1, 0, 1], [0, 1, 2]])
    made = curves(seen, flags, weights, objects_of(truths, 1, weights), rows=1)
    expected = [(1 / 3) + (1 / 3) * (2 / 3), 1.0, (2 / 3) * (2 / 3)]
    torch.testing.assert_close(made.area()[:, 0], torch.tensor(expected))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"boxes": [BOX]}, "image 0 needs boxes and labels, got boxes"),
        ({"boxes": [BOX], "labels": [0]}, "labels from 1 on"),
        ({"boxes": [BOX], "labels": [1.0]}, "labels from 1 on"),
        ({"boxes": [BOX], "labels": [1, 1]}, r"boxes \[n, 4\] and labels \[n\]"),
        ({"boxes": [[0, 0, 0, 5]], "labels": [1]}, "with an area"),
        ({"boxes": [[0, 0, float("nan"), 5]], "labels": [1]}, "with an area"),
        (None, "at least one image"),
    ],
)
def test_wrong_objects_are_refused(target, message):
    with pytest.raises(DataError, match=message):
        pack_truths([target] if target else [])


CASES = list(load_golden("voc_ap"))


def continuous(boxes):
    """Boxes of 1-based pixels, both corners included, as continuous ones."""
    return boxes.double() - boxes.new_tensor([1, 1, 0, 0]).double()


def problem(case):
    """Detections and objects of one class."""
    given = case.inputs
    boxes, difficult = continuous(given["gt_boxes"]), given["gt_difficult"]
    targets = []
    for image in range(case.settings["num_images"]):
        own = given["gt_image"] == image
        labels = torch.ones(int(own.sum()), dtype=torch.long)
        targets.append(
            {"boxes": boxes[own], "labels": labels, "difficult": difficult[own]}
        )
    order = given["det_image"].argsort(stable=True)
    found = Detections(
        given["det_image"][order],
        torch.ones(len(order), dtype=torch.long),
        given["det_score"][order].double(),
        continuous(given["det_boxes"])[order],
        torch.arange(len(order)),
    )
    return found, pack_truths(targets).double()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_averages_and_the_curve(case):
    found, truths = problem(case)
    flags = matched(found, truths, overlap=case.settings["iou_threshold"])
    weights = torch.ones(1, case.settings["num_images"], dtype=torch.float64)
    objects = objects_of(truths, 1, weights)
    made = curves(found, flags, weights, objects, rows=1)
    expected = case.expected
    assert objects.item() == expected["npos"]
    assert_golden(made.recalls[0, 0], expected["recall_curve"], case.tolerance)
    assert_golden(made.precisions[0, 0], expected["precision_curve"], case.tolerance)
    assert_golden(made.eleven_points()[0, 0], expected["ap_11_point"], case.tolerance)
    assert_golden(made.area()[0, 0], expected["ap_area"], case.tolerance)


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


def boxes(count, groups, seed):
    generator = seeded(seed)
    corner = torch.rand(count, 2, generator=generator) * 40
    size = 5 + torch.rand(count, 2, generator=generator) * 20
    score = torch.rand(count, generator=generator)
    group = torch.randint(0, groups, (count,), generator=generator)
    return torch.cat([corner, corner + size], 1), score, group


@pytest.mark.parametrize("overlap", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("count", "groups"), [(1, 1), (60, 40), (900, 30), (900, 2)])
def test_the_same_boxes_remain_in_the_same_order(count, groups, overlap):
    for seed in range(3):
        box, score, group = boxes(count, groups, seed)
        expected = batched_nms(box, score, group, overlap)
        assert torch.equal(suppressed(box, score, group, overlap), expected)


def test_the_memory_at_a_time_does_not_matter(monkeypatch):
    box, score, group = boxes(500, 20, 0)
    whole = suppressed(box, score, group, 0.5)
    monkeypatch.setattr(detections, "COMPARED_AT_ONCE", 1)
    assert torch.equal(suppressed(box, score, group, 0.5), whole)


def test_boxes_equally_sure_none_and_without_area():
    box = torch.tensor([[0.0, 0, 10, 10]]).repeat(3, 1)
    group = torch.tensor([0, 0, 1])
    assert suppressed(box, torch.ones(3), group, 0.5).tolist() == [0, 2]
    nothing = suppressed(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0).long(), 0.5)
    assert nothing.tolist() == []
    flat = torch.tensor([[3.0, 3, 3, 3]]).repeat(2, 1)
    kept = suppressed(flat, torch.tensor([0.5, 0.6]), torch.zeros(2).long(), 0.5)
    assert kept.tolist() == [1, 0]


CROWD = [0.0, 0.0, 100.0, 100.0]


def with_crowd(*boxes, labels=None):
    """The objects of one image, of which the last is a crowd."""
    marks = torch.zeros(len(boxes), dtype=torch.long)
    marks[-1] = 1
    return objects(*boxes, labels=labels) | {"iscrowd": marks}


@pytest.mark.parametrize(
    ("truth", "label", "box", "flag"),
    [
        (with_crowd(BOX, CROWD), 1, moved(50.0), -1),  # in the crowd
        (with_crowd(BOX, CROWD), 1, moved(1.0), 1),  # rather an object in it
        (with_crowd(BOX, CROWD), 1, moved(95.0), -1),  # just half of it is in the crowd
        (with_crowd(BOX, CROWD), 1, moved(96.0), 0),
        (with_crowd(BOX, CROWD, labels=[1, 2]), 1, moved(50.0), 0),  # of another class
    ],
)
@pytest.mark.parametrize("rule", ["voc", "coco"])
def test_what_lies_in_a_crowd_is_ignored(truth, label, box, flag, rule):
    seen = found((0, label, 0.9, box))
    assert matched(seen, pack_truths([truth]), rule=rule).tolist() == [flag]


def test_crowds_are_neither_counted_nor_learned():
    truths = pack_truths([with_crowd(BOX, CROWD, moved(30.0))])
    assert objects_of(truths, 1, torch.ones(1, 1)).tolist() == [[2.0]]
    assert single(truths).tolist() == [[True, True, False]]
    regions = seeded_regions()
    without = pack_truths([objects(BOX, CROWD)])
    torch.testing.assert_close(
        DetectionLoss()(regions, truths), DetectionLoss()(regions, without)
    )


def seeded_regions():
    """Packed outputs of regions of one image, of one class."""
    generator = seeded(3)
    corner = 20 * torch.rand(1, 8, 2, generator=generator)
    boxes = torch.cat([corner, corner + 10], -1)
    logits = torch.randn(1, 8, 2, generator=generator)
    there = torch.ones(1, 8, dtype=torch.bool)
    return RegionOutputs(logits, boxes[:, :, None] + 1, boxes, there).packed()


@pytest.mark.parametrize("seed", range(10))
def test_scenes_with_crowds_have_the_precision_of_the_evaluation_code(seed):
    draws = seeded(seed)
    corner = 40 * torch.rand(4, 6, 2, generator=draws)
    side = 10 + 10 * torch.rand(4, 6, 2, generator=draws)
    boxes = torch.cat([corner, corner + side], -1)
    targets = [with_crowd(*own[:3].tolist(), [0.0, 0.0, 30.0, 30.0]) for own in boxes]
    shift = 4 * torch.rand(4, 6, 4, generator=draws)
    score = torch.rand(24, generator=draws)
    image = torch.arange(4).repeat_interleave(6)
    each = (torch.ones(24, dtype=torch.long), score, (boxes + shift).flatten(0, 1))
    seen = Detections(image, *each, image)
    seen = seen.at(score.argsort(descending=True))
    truths = pack_truths(targets)
    flags, alike = matched(seen, truths, rule="coco"), torch.ones(1, 4)
    count = objects_of(truths, 1, alike)
    made = curves(seen, flags, alike, count, rows=1)
    assert (flags == -1).any() and (flags == 1).any()
    assert made.coco().item() == pytest.approx(by_pycocotools(seen, targets), abs=1e-6)


def by_pycocotools(seen, targets):
    """Return AP50 as COCO's own code computes it."""
    sides = torch.tensor([0, 1, 0, 1])
    annotations = [
        {
            "id": place * 10 + at + 1,
            "image_id": place,
            "category_id": 1,
            "bbox": (box - box[sides] * torch.tensor([0, 0, 1, 1])).tolist(),
            "area": (box[2:] - box[:2]).prod().item(),
            "iscrowd": int(crowd),
        }
        for place, target in enumerate(targets)
        for at, (box, crowd) in enumerate(
            zip(target["boxes"], target["iscrowd"], strict=True)
        )
    ]
    found = [
        {
            "image_id": image.item(),
            "category_id": 1,
            "bbox": (box - box[sides] * torch.tensor([0, 0, 1, 1])).tolist(),
            "score": score.item(),
        }
        for image, score, box in zip(seen.image, seen.score, seen.box, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": place} for place in range(len(targets))],
            "annotations": annotations,
            "categories": [{"id": 1}],
            "info": {},
        }
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(found), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge.stats[1]


NARROW = {"boxes": torch.tensor([BOX]), "labels": torch.tensor([1])}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"boxes": torch.tensor([BOX]) / 20}, "all of them lie within a pixel: mult"),
        ({"iscrowd": torch.zeros(2)}, r"image 0 needs iscrowd \[n\] like its labels"),
        ({"difficult": torch.zeros(2)}, r"image 0 needs difficult \[n\] like its la"),
    ],
)
def test_what_objects_cannot_be_is_refused(change, text):
    with pytest.raises(DataError, match=text):
        pack_truths([NARROW | change])
