"""Average precision of detections against golden vectors of the VOC evaluation."""

import pytest
import torch

from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections
from metricopt.detection.matching import matched
from metricopt.detection.packed import pack_truths
from tests.golden import assert_golden, load_golden

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
