"""Every registered detector: its size, its seed, and its head as the library has it."""

import pytest
import torch

from benchmarks.networks.detection.contract import DETECTORS, build_detector
from metricopt.detection.detections import detections
from metricopt.detection.head import DetectorHead
from metricopt.errors import ConfigError

# torchvision publishes 41,755,286 for 90 classes and the background.
RESNET50 = 41_755_286 - 87 * (1_024 + 1) * 5
WEIGHTS = {"resnet50-fpn": RESNET50, "squeezenet1_1": 1_132_607, "tiny": 43_201}


@pytest.mark.parametrize("name", list(DETECTORS))
def test_detectors_have_their_size_and_say_what_their_head_says(name):
    network = build_detector(name, 3, seed=0).eval()
    assert sum(weight.numel() for weight in network.parameters()) == WEIGHTS[name]
    images = [torch.rand(3, 96, 128, generator=torch.Generator().manual_seed(1))]
    head = DetectorHead(network, proposals=1_000)
    with torch.no_grad():
        found = detections(head(head.regions(images)))
        (expected,) = network(images)
    assert torch.equal(found.label, expected["labels"])
    torch.testing.assert_close(found.score, expected["scores"])
    torch.testing.assert_close(found.box, expected["boxes"], atol=1e-2, rtol=1e-4)


def test_weights_are_those_of_the_seed():
    state = torch.random.get_rng_state()
    one, same, other = (build_detector("tiny", 2, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [net.roi_heads.box_head.fc6.weight for net in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_no_class_is_refused():
    with pytest.raises(ConfigError, match="1 class or more, got 0"):
        build_detector("tiny", 0, seed=0)
