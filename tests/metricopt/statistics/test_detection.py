"""Statistics of detection: average precision is linear in them, and they descend."""

import pytest
import torch

from metricopt.detection.head import DetectorHead, Regions
from metricopt.reading.callables import make_metric
from metricopt.statistics.detection import RECALLS, DetectionStatistics
from tests.metricopt.detection.detectors import CLASSES, detector, images
from tests.metricopt.drawn import seeded

KIND = DetectionStatistics()
ELEVENTHS = [RECALLS.index(step / 10) for step in range(11)]


@pytest.fixture(scope="module")
def problem():
    """Outputs [B, N, P, V] of three detectors, whose logits differ, and objects."""
    head = DetectorHead(detector(), proposals=30)
    regions = Regions(head, images(12))
    outputs = head(regions.batch(slice(None))).detach()
    noise = torch.randn(3, *outputs.shape[:-1], CLASSES + 1, generator=seeded(3))
    rows = outputs.expand(3, *outputs.shape).clone()
    rows[..., : CLASSES + 1] += noise
    return rows, regions.targets


def test_average_precision_is_the_mean_of_eleven_precisions(problem):
    outputs, truths = problem
    groups = KIND.exact(outputs, truths)
    expected = make_metric("ap50").values(outputs, truths)
    assert expected.min() > 0
    eleven = groups["mean precisions"][:, ELEVENTHS].mean(1)
    torch.testing.assert_close(eleven, expected)
    classes = groups["precisions"].view(3, CLASSES, len(RECALLS))[:, :, ELEVENTHS]
    for label in range(1, CLASSES + 1):
        own = make_metric("ap50", label=label).values(outputs, truths)
        torch.testing.assert_close(classes[:, label - 1].mean(-1), own)


def test_weights_leave_images_out_and_repeat_them(problem):
    outputs, truths = problem
    weights = torch.ones(3, 12)
    weights[:, :5], weights[:, 7] = 0.0, 2.0
    found = KIND.exact(outputs, truths, weights)
    kept = torch.tensor([5, 6, 7, 7, 8, 9, 10, 11])
    expected = KIND.exact(outputs[:, kept], truths[kept])
    # A repeated image is as sure as itself, and curves may take it in two steps.
    torch.testing.assert_close(found["rates"], expected["rates"])
    weights[:, 7] = 1.0
    kept = torch.arange(5, 12)
    found = KIND.exact(outputs, truths, weights)
    expected = KIND.exact(outputs[:, kept], truths[kept])
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values)


def test_one_tensor_expanded_is_judged_once_with_many_weights(problem):
    outputs, truths = problem
    weights = torch.rand(4, 12, generator=seeded(0))
    found = KIND.exact(outputs[:1].expand(4, -1, -1, -1), truths, weights)
    expected = KIND.exact(outputs[:1].repeat(4, 1, 1, 1), truths, weights)
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values)


def test_a_step_along_the_smooth_gradient_raises_average_precision(problem):
    outputs, truths = problem
    moved = outputs.clone().requires_grad_()
    smooth = KIND.smooth(moved, truths)["mean precisions"][:, ELEVENTHS].mean(1)
    (gradient,) = torch.autograd.grad(smooth.sum(), moved)
    assert not gradient[..., CLASSES + 1 :].any()  # boxes stay
    metric = make_metric("ap50-area")
    before = metric.values(outputs, truths)
    step = gradient / gradient.abs().amax((1, 2, 3), keepdim=True)
    assert bool((metric.values(outputs + 0.3 * step, truths) > before).all())


def test_smooth_statistics_are_near_the_exact_ones_in_zero_and_one(problem):
    smooth, exact = KIND.smooth(*problem), KIND.exact(*problem)
    assert set(smooth) == set(exact)
    for name, values in exact.items():
        assert values.min() >= 0
        assert values.max() <= 1 + 1e-9
        assert (smooth[name] - values).abs().mean() < 0.1


def test_a_class_that_is_never_found_has_no_precision_and_no_gradient(problem):
    outputs, truths = problem
    outputs = outputs.clone()
    outputs[..., 2] = -1e3  # the second class is never above the least score
    averages = [
        make_metric("ap50", label=label).values(outputs, truths) for label in (1, 2)
    ]
    assert (averages[1] == 0).all()
    found = make_metric("ap50").values(outputs, truths)
    torch.testing.assert_close(found, averages[0] / 2)
    for wanted in (None, torch.full((3, 12), 2.0)):
        outputs.requires_grad_()
        smooth = KIND.smooth(outputs, truths, wanted)
        rates = smooth["rates"].view(3, CLASSES, -1)
        assert (rates[:, 1] == 0).all()
        sum(values.sum() for values in smooth.values()).backward()
        assert outputs.grad.isfinite().all()
        assert (outputs.grad[..., 1] != 0).any()
        outputs = outputs.detach()


def test_nothing_found_at_all_has_a_gradient_of_zero(problem):
    outputs, truths = problem
    outputs = outputs.clone()
    outputs[..., 0] = 1e3  # background everywhere
    outputs.requires_grad_()
    smooth, exact = KIND.smooth(outputs, truths), KIND.exact(outputs, truths)
    for name, values in smooth.items():
        assert torch.equal(values, exact[name])
        assert not values.any()
    sum(values.sum() for values in smooth.values()).backward()
    assert not outputs.grad.any()
