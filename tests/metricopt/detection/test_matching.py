"""Hits and false alarms by the rules of two benchmarks, on cases made by hand."""

import pytest
import torch

from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections
from metricopt.detection.matching import matched
from metricopt.detection.packed import pack_truths
from metricopt.errors import DataError

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
