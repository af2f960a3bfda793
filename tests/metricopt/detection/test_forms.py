"""Boxes in another form, or far outside their image, are told before training."""

import pytest
import torch

from metricopt.detection import Regions
from metricopt.detection.forms import check_found, check_inside
from metricopt.detection.region_outputs import RegionOutputs
from metricopt.detection.truths import pack_truths
from metricopt.errors import DataError
from tests.metricopt.drawn import seeded

WIDE = torch.tensor([[60.0, 10.0, 90.0, 30.0], [5.0, 12.0, 65.0, 30.0]])
SIZE = WIDE[:, 2:] - WIDE[:, :2]
FORMS = {
    "y1, x1, y2, x2": WIDE[:, [1, 0, 3, 2]],
    "x, y, width, height": torch.cat([WIDE[:, :2], SIZE], 1),
    "the middle, width and height": torch.cat(
        [(WIDE[:, :2] + WIDE[:, 2:]) / 2, SIZE], 1
    ),
}


def truths(boxes):
    """Objects of two images with these boxes, whatever they are."""
    found = torch.zeros(2, 2, 6)
    found[..., :4], found[..., 4] = boxes, 1
    return found


def outputs(boxes, noise=2.0):
    """Packed outputs of a detector that looks near some boxes, and elsewhere."""
    near = boxes.expand(2, 2, 4) + noise * torch.rand(2, 2, 4, generator=seeded())
    whole = torch.tensor([0.0, 0.0, 99.0, 59.0]).expand(2, 1, 4)
    proposals = torch.cat([near, whole], 1)
    there = torch.ones(2, 3, dtype=torch.bool)
    boxes = proposals[:, :, None]
    return RegionOutputs(torch.zeros(2, 3, 2), boxes, proposals, there).packed()


@pytest.mark.parametrize("form", FORMS)
def test_another_form_of_boxes_is_named(form):
    with pytest.raises(
        DataError, match=f"100% of the objects if boxes are {form}, and"
    ):
        check_found(outputs(WIDE), truths(FORMS[form]))


def test_right_boxes_and_blind_detectors_are_taken():
    blind = outputs(WIDE + 500)
    for made, given in (
        (outputs(WIDE), WIDE),
        (blind, WIDE),
        (blind, FORMS["y1, x1, y2, x2"]),
    ):
        before = made.clone()
        check_found(made, truths(given))
        assert torch.equal(made, before)
    nothing = truths(WIDE)
    nothing[..., 5] = 1  # all of them difficult
    check_found(outputs(FORMS["y1, x1, y2, x2"]), nothing)


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ([0.0, 0.0, 100.0, 60.0], True),
        ([-5.0, 0.0, 104.0, 62.0], True),  # roughly marked
        ([10.0, 10.0, 900.0, 20.0], False),
        ([10.0, 70.0, 20.0, 90.0], False),  # y before x
        ([-40.0, 0.0, 20.0, 20.0], False),
    ],
)
def test_boxes_lie_in_their_image(box, inside):
    targets = [{"boxes": WIDE, "labels": [1, 1]}, {"boxes": [box], "labels": [1]}]
    packed = pack_truths(targets)
    sizes = [(60, 100), (60, 100)]
    if inside:
        assert check_inside(packed, sizes) is None
        return
    with pytest.raises(
        DataError, match="boxes of image 1, 100 pixels wide and 60 high"
    ):
        check_inside(packed, sizes)
    with pytest.raises(DataError, match="check that x stands before y"):
        Regions(None, [(torch.zeros(3, 60, 100), target) for target in targets])
