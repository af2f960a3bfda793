"""The head of a detector says what the detector says, adapted or not."""

import pytest
import torch
from torch import nn

from metricopt.adapters.film import FiLM
from metricopt.detection.detections import detections
from metricopt.detection.head import DetectorHead, Regions
from metricopt.errors import ConfigError
from tests.metricopt.detection.detectors import detector, images
from tests.metricopt.drawn import seeded

PAIRS = images()


def assert_same(found, expected):
    """Detections of the head against those of the detector, image by image."""
    for place, one in enumerate(expected):
        own = found.at((found.image == place).nonzero()[:, 0])
        assert torch.equal(own.label, one["labels"])
        torch.testing.assert_close(own.score, one["scores"])
        torch.testing.assert_close(own.box, one["boxes"], atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("convolutions", [False, True])
def test_detections_are_those_of_the_detector_with_film_too(convolutions):
    network = detector(convolutions=convolutions)
    head = DetectorHead(network, proposals=30)
    regions = Regions(head, PAIRS).batch(slice(None))
    with torch.no_grad():
        expected = network([image for image, _ in PAIRS])
    assert sum(map(len, (one["labels"] for one in expected))) > 50
    assert_same(detections(head(regions)), expected)
    film = FiLM(head, regions[:2], sites=head.sites, size=8)
    assert film.is_cut
    phi = torch.randn(2, 8, generator=seeded(1))
    outputs = film.predict(film.encode(regions), phi)
    for row, own in zip(phi, outputs, strict=True):
        with film.attach(row), torch.no_grad():
            expected = network([image for image, _ in PAIRS])
        assert_same(detections(own), expected)
    assert not torch.allclose(outputs[0], outputs[1])


def test_fewer_proposals_are_filled_up_and_say_nothing():
    head = DetectorHead(detector(), proposals=200)
    regions = Regions(head, PAIRS).batch(slice(2))
    assert regions.shape[1] == 200
    assert not regions[:, -1].any()
    found = detections(head(regions))
    assert found.region.max() < 30


def test_a_network_without_box_head_is_refused():
    with pytest.raises(ConfigError, match=r"roi_heads.box_head .* got Linear"):
        DetectorHead(nn.Linear(2, 2))
