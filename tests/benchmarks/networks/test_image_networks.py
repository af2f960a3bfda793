"""Image networks by name: shapes, and weights that a seed decides."""

import math

import pytest
import torch
from torch import nn
from torchvision import models

from benchmarks.networks.contract import IMAGE_NETWORKS, build_network
from metricopt.errors import ConfigError

INPUTS = {"digit-net": (1, 8, 8), "nasnet-a-cifar": (3, 16, 16)}
RESNETS = ("resnet8", "resnet20", "resnet32", "resnet56")
INPUTS |= dict.fromkeys(("small", "resnet9", *RESNETS), (3, 32, 32))
INPUTS |= dict.fromkeys(("nasnet-a-cifar-small", "nasnet-a-tiny"), (3, 32, 32))
INPUTS |= dict.fromkeys(("resnet18", "resnet18-slim"), (3, 64, 64))
INPUTS |= dict.fromkeys(
    (f"nasnet-a-{n}" for n in ("large", "mobile", "small")), (3, 64, 64)
)
PUBLISHED = {
    "resnet18": 11_689_512,  # torchvision's
    "nasnet-a-large": 88_753_150,  # timm's
    "nasnet-a-mobile": 5_289_978,  # of the weights that were published for it
}


def build(name, seed=0):
    return build_network(name, lambda features: nn.Linear(features, 7), seed)


def test_every_network_is_known_here():
    assert set(IMAGE_NETWORKS) == set(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
def test_a_network_is_a_sequence_from_images_to_outputs(name):
    network = build(name)
    assert isinstance(network, nn.Sequential)
    assert isinstance(network[-1], nn.Linear)
    assert network(torch.randn(4, *INPUTS[name])).shape == (4, 7)


@pytest.mark.parametrize("name", INPUTS)
def test_the_seed_alone_decides_the_weights(name):
    state = torch.get_rng_state()
    one, same, other = build(name, 3), build(name, 3), build(name, 4)
    assert torch.equal(torch.get_rng_state(), state)
    pairs = zip(one.state_dict().values(), same.state_dict().values(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)
    first, different = (next(network.parameters()) for network in (one, other))
    assert not torch.equal(first, different)


@pytest.mark.parametrize(("name", "weights"), PUBLISHED.items())
def test_it_has_the_published_number_of_weights(name, weights):
    network = build_network(name, to_classes, 0)
    assert sum(weight.numel() for weight in network.parameters()) == weights


def test_resnet_18_is_wired_as_that_of_torchvision():
    torch.manual_seed(0)
    other, own = models.resnet18().eval(), build_network("resnet18", to_classes, 0)
    pairs = zip(own.state_dict().values(), other.state_dict().values(), strict=True)
    for mine, theirs in pairs:
        mine.copy_(theirs)
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(own.eval()(images), other(images))


def to_classes(features):
    return nn.Linear(features, 1000)


def test_convolutions_have_hes_initialisation():
    for layer in build("resnet32").modules():
        if isinstance(layer, nn.Conv2d):
            deviation = math.sqrt(2 / (9 * layer.out_channels))
            assert layer.weight.std().item() == pytest.approx(deviation, rel=0.15)


def test_an_unknown_network_is_refused():
    with pytest.raises(ConfigError, match=r"unknown image network 'vgg'; known: .*sma"):
        build("vgg")
