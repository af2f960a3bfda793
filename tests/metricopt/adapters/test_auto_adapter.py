"""The adapter a network gets when none is named."""

import pytest
import torch
from torch import nn

import metricopt
from metricopt import ConfigError, DynamicBias
from tests.metricopt import adapter_networks


def test_the_automatic_adapter_suits_the_network() -> None:
    convolutional = adapter_networks.randomise(adapter_networks.ResNet())
    images = torch.randn(2, 3, 8, 8)
    adapter = metricopt.auto_adapter(convolutional, images)
    assert (adapter.describe()["form"], adapter.size) == ("direct", 32)
    assert metricopt.auto_adapter(convolutional, images, size=7).size == 7
    stages = metricopt.auto_adapter(convolutional, images, sites="stages")
    assert len(stages.sites) > 1
    wide = nn.Sequential(nn.Conv2d(3, 129, 1), nn.AvgPool2d(8), nn.Flatten())
    assert metricopt.auto_adapter(wide, images).describe()["form"] == "generator"
    assert metricopt.auto_adapter(wide, images).size == 128


def test_a_network_without_convolutions_gets_biases() -> None:
    inputs = torch.randn(2, 6)
    network = adapter_networks.mlp()
    adapter = metricopt.auto_adapter(network, inputs)
    assert isinstance(adapter, DynamicBias)
    assert (adapter.size, adapter.sites[0].name) == (16, "0")
    other = metricopt.auto_adapter(network, inputs, size=3, sites=["4"])
    assert (other.size, other.sites[0].name) == (3, "4")
    for sites in ("stages", ["0", "4"]):
        with pytest.raises(ConfigError, match=r"takes one site, .*, got"):
            metricopt.auto_adapter(network, inputs, sites=sites)
