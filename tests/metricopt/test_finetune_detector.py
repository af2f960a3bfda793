"""A user's own torchvision detector, fine-tuned towards average precision."""

import pytest
import torch

from metricopt import FiLM, FinetuneOptions, finetune
from metricopt.detection.detections import detections
from metricopt.detection.head import DetectorHead, Regions
from metricopt.detection.region_outputs import region_outputs
from metricopt.errors import ConfigError, DataError
from metricopt.losses.detection import DetectionLoss
from metricopt.metrics.detection import DetectionMetric
from metricopt.reading.callables import make_metric
from tests.metricopt.detection.detectors import detector, images


def share_found(detections, objects):
    """Share of the objects whose middle lies in the surest box of its image."""
    hits = []
    for seen, wanted in zip(detections, objects, strict=True):
        middle = (wanted["boxes"][:, :2] + wanted["boxes"][:, 2:]) / 2
        low, high = seen["boxes"][:1, :2], seen["boxes"][:1, 2:]
        hits.append(((middle >= low) & (middle <= high)).all(1))
    return torch.cat(hits).float().mean()


def metrics():
    """A registered metric, and one of the user's own."""
    return ["ap50", DetectionMetric(share_found)]


def improved(head, train, observe, metric="ap50", **options):
    adapter = FiLM(head, train.batch(slice(2)), sites=head.sites, size=8)
    return finetune(
        head,
        train=train,
        observe=observe,
        loss=DetectionLoss(),
        metric=metric,
        options=FinetuneOptions(adapter=adapter, **options),
    )


@pytest.mark.parametrize("metric", metrics(), ids=["registered", "own"])
def test_a_detector_of_ones_own(metric):
    network = detector()
    head = DetectorHead(network, proposals=20)
    train, observe = Regions(head, images(20, 1)), Regions(head, images(50, 2))
    found = improved(head, train, observe, metric, queries=8)
    assert found.method == "metricopt-outputs"
    assert found.spent.queries <= 8
    assert found.metric_after >= found.metric_before
    regions = observe.batch(slice(None))
    found.apply()
    with torch.no_grad():
        again = make_metric(metric).value(head(regions), observe.targets)
    assert abs(again - found.metric_after) < 1e-6
    found.remove()


def adapted(network):
    head = DetectorHead(network, proposals=20)
    regions = Regions(head, images(2, 1)).batch(slice(2))
    return head, FiLM(head, regions, sites=head.sites)


def test_a_merged_head_that_the_detector_lacks_is_told():
    network = detector()
    network.roi_heads.box_head.fc7.register_forward_hook(lambda *_: None)
    head, film = adapted(network)
    merged = film.merged(torch.linspace(-1, 1, film.size))
    with pytest.raises(ConfigError, match="whole detector does not have it"):
        _ = merged.detector
    assert head.detector is network


@torch.no_grad()
def test_what_is_merged_is_the_whole_detector():
    network = detector()
    _, film = adapted(network)
    phi = torch.linspace(-1, 1, film.size)
    shown = [image for image, _ in images(4, 3)]
    with film.attach(phi):
        applied = network(shown)
    merged, untouched = film.merged(phi).detector(shown), network(shown)
    for own, one, other in zip(merged, applied, untouched, strict=True):
        torch.testing.assert_close(own["scores"], one["scores"])
        torch.testing.assert_close(own["boxes"], one["boxes"])
        assert not torch.equal(own["scores"], other["scores"])


def test_a_detector_that_finds_nothing_stays_as_it_is():
    network = detector()
    with torch.no_grad():
        network.roi_heads.box_predictor.cls_score.bias[0] = 1e3  # background, surely
    head = DetectorHead(network, proposals=20)
    train, observe = Regions(head, images(20, 1)), Regions(head, images(30, 2))
    assert not detections(head(observe.batch(slice(None)))).score.numel()
    for method in ("metricopt-outputs", "cma-es"):
        options = {"method": method, "no_harm": True, "queries": 16}
        found = improved(head, train, observe, "ap50", **options)
        assert found.metric_after == found.metric_before == 0
        assert not found.phi.any()
        assert found.evidence.reason.endswith("The untouched network is kept.")


def test_a_class_the_detector_does_not_know_is_named_before_any_step():
    head = DetectorHead(detector(), proposals=20)
    wrong = [
        (image, target | {"labels": target["labels"] + 1})
        for image, target in images(30, 2)
    ]
    train, observe = Regions(head, images(20, 1)), Regions(head, wrong)
    with pytest.raises(DataError, match="labels up to 2, the classes of the detector"):
        improved(head, train, observe)
    with pytest.raises(DataError, match="labels from 1 to 2, got 3"):
        improved(head, observe, train)


@torch.no_grad()
def test_boxes_with_y_before_x_are_told_before_any_query():
    """Objects where the detector looks, but for the order of their sides."""
    head = DetectorHead(detector(), proposals=20)
    train = Regions(head, images(20, 1))
    shown = images(50, 2)
    seen = region_outputs(head(Regions(head, shown).batch(slice(None)))).proposals
    wide = seen[:, :, 2] - seen[:, :, 0] > 2 * (seen[:, :, 3] - seen[:, :, 1])
    objects = torch.zeros(50, 20, 6)
    objects[..., :4] = seen[..., [1, 0, 3, 2]]
    objects[..., 4] = wide
    assert wide.sum() > 20
    observe = Regions(head, shown, targets=objects)
    with torch.enable_grad(), pytest.raises(DataError, match="y1, x1, y2, x2") as told:
        improved(head, train, observe, queries=8)
    assert told.value.partial is None
