"""The AP loss of a detector: what it is of given ranks, and that its steps help."""

import pytest
import torch

from baselines.detection_losses.blackbox_ap import DetectionAP
from metricopt.detection.head import DetectorHead, Regions
from metricopt.detection.region_outputs import RegionOutputs, region_outputs
from metricopt.errors import DataError
from metricopt.losses.detection import DetectionLoss
from tests.metricopt.detection.detectors import CLASSES, detector, images


@pytest.fixture(scope="module")
def problem():
    head = DetectorHead(detector(), proposals=30)
    regions = Regions(head, images(8))
    return head(regions.batch(slice(None))).detach(), regions.targets


def of_one_class(logits, right):
    """The loss of one image whose regions have these logits for the only class."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [50, 50, 60, 60]])
    places = boxes[[0 if each else 1 for each in right]]
    scores = torch.stack([torch.zeros(len(logits)), torch.tensor(logits)], 1)
    present = torch.ones(len(logits), dtype=torch.bool)
    packed = RegionOutputs(scores, places[:, None], places, present).packed()
    truths = torch.tensor([[[0.0, 0, 10, 10, 1, 0]]])
    return DetectionAP(margin=0.0, interclass=0.0)(packed[None], truths)


def test_it_is_one_minus_average_precision():
    assert of_one_class([3.0, 2.0, 1.0], [True, False, False]) < 1e-4
    found = of_one_class([3.0, 2.0, 1.0], [False, True, True])
    torch.testing.assert_close(
        found, torch.tensor(1 - (1 / 2 + 2 / 3) / 2), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("loss", [DetectionLoss(), DetectionAP()])
def test_rows_are_losses_of_their_own(loss, problem):
    outputs, truths = problem
    rows = loss.row_losses(
        outputs.view(2, 4, *outputs.shape[1:]), truths.view(2, 4, 2, 6)
    )
    each = torch.stack([loss(outputs[:4], truths[:4]), loss(outputs[4:], truths[4:])])
    torch.testing.assert_close(rows, each)


@pytest.mark.parametrize("loss", [DetectionLoss(), DetectionAP(lam=4.0)])
def test_a_step_along_its_gradient_lowers_it(loss, problem):
    outputs, truths = problem
    moved = outputs.clone().requires_grad_()
    before = loss(moved, truths)
    (gradient,) = torch.autograd.grad(before, moved)
    assert gradient[..., : CLASSES + 1].any()
    step = gradient / gradient.abs().max()
    assert loss(outputs - 0.5 * step, truths) < before


@pytest.mark.parametrize("loss", [DetectionLoss(), DetectionAP()])
def test_regions_that_are_not_there_say_nothing(loss, problem):
    outputs, truths = problem
    parts = region_outputs(outputs)
    present = parts.present.clone()
    present[:, 20:] = False
    noise = torch.randn(parts.logits.shape, generator=torch.Generator().manual_seed(0))
    noise[:, :20] = 0
    one = parts._replace(present=present)
    other = one._replace(logits=parts.logits + 50 * noise)
    values = [loss(each.packed(), truths) for each in (one, other)]
    torch.testing.assert_close(*values)
    both = one.packed().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(both, truths), both)
    assert not gradient[:, 20:].any()


@pytest.mark.parametrize("loss", [DetectionLoss(), DetectionAP()])
def test_images_without_an_object_are_no_error(loss, problem):
    outputs, truths = problem
    assert loss(outputs, torch.zeros_like(truths)).isfinite()


@pytest.mark.parametrize("loss", [DetectionLoss(), DetectionAP()])
def test_a_class_the_detector_does_not_have_is_refused(loss, problem):
    outputs, truths = problem
    with pytest.raises(DataError, match="labels from 1 to 2, got 3"):
        loss(
            outputs, truths + torch.tensor([0, 0, 0, 0, 2, 0]) * (truths[..., 4:5] == 1)
        )
