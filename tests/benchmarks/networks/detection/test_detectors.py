"""Every registered detector: its size, its seed, and its head as the library has it."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from benchmarks.networks.detection import resnet50_fpn
from benchmarks.networks.detection.contract import build_detector
from metricopt.detection.detections import detections
from metricopt.detection.region_outputs import region_outputs
from metricopt.errors import ConfigError

# torchvision publishes 41,755,286 for 90 classes and the background.
RESNET50 = 41_755_286 - 87 * (1_024 + 1) * 5
WEIGHTS = {"resnet50-fpn": RESNET50, "squeezenet1_1": 1_132_607, "tiny": 43_201}


@pytest.mark.parametrize("name", WEIGHTS)
def test_detectors_have_their_size_and_say_what_their_head_says(name, monkeypatch):
    monkeypatch.setattr(resnet50_fpn, "SIDES", (96, 128))  # those of the image
    network = build_detector(name, 3, seed=0).eval()
    assert sum(weight.numel() for weight in network.parameters()) == WEIGHTS[name]
    images = [torch.rand(3, 96, 128, generator=torch.Generator().manual_seed(1))]
    head = network.head(proposals=1_000)
    with torch.no_grad():
        found = detections(head(head.regions(images)))
        (expected,) = network.network(images)
    torch.testing.assert_close(found.score, expected["scores"])
    # Random weights give boxes of nearly equal scores, in either order.
    one = torch.cat([found.box, 1e3 * found.label[:, None]], 1)
    other = torch.cat([expected["boxes"], 1e3 * expected["labels"][:, None]], 1)
    exact = "donot_use_mm_for_euclid_dist"
    apart = torch.cdist(one, other, compute_mode=exact)
    assert apart.amin(0).max() < 0.05
    assert apart.amin(1).max() < 0.05


def test_weights_are_those_of_the_seed():
    state = torch.random.get_rng_state()
    one, same, other = (build_detector("tiny", 2, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [net.network.roi_heads.box_head.fc6.weight for net in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_no_class_is_refused():
    with pytest.raises(ConfigError, match="1 class or more, got 0"):
        build_detector("tiny", 0, seed=0)


@pytest.mark.parametrize("name", ["squeezenet1_1", "tiny"])
def test_the_parts_of_the_loss_are_those_of_torchvision(name):
    network = build_detector(name, 3, seed=0).train()
    generator = torch.Generator().manual_seed(1)
    images = [torch.rand(3, 64, 96, generator=generator) for _ in range(2)]
    boxes = torch.tensor([[5.0, 5, 30, 40], [40, 20, 90, 60]])
    targets = [
        {"boxes": boxes, "labels": torch.tensor([1, 3])},
        {"boxes": boxes[:0], "labels": torch.tensor([], dtype=torch.int64)},
    ]
    torch.manual_seed(2)
    expected = network.network(images, targets)
    torch.manual_seed(2)
    logits, labels, others = network((images, targets))
    torch.testing.assert_close(
        cross_entropy(logits, labels), expected.pop("loss_classifier")
    )
    torch.testing.assert_close(others, sum(expected.values()))
    assert logits.shape == (len(labels), 4)
    assert set(labels.tolist()) == {0, 1, 3}


def test_proposals_are_in_the_pixels_of_the_image():
    network = build_detector("squeezenet1_1", 1, seed=0)
    small = torch.rand(3, 48, 64, generator=torch.Generator().manual_seed(1))
    head = network.head(50)
    with torch.no_grad():
        outputs = region_outputs(head(head.regions([small])))
    found = outputs.proposals[0][outputs.present[0]]
    assert len(found) == 50
    assert (found >= 0).all()
    assert 32 < found[:, 2].max() <= 64
    assert 24 < found[:, 3].max() <= 48
