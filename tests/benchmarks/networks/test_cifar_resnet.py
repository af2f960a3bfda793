"""Residual networks: the weights and layers of the published ones."""

import pytest
import torch

from benchmarks.networks.cifar_resnet import Subsampling, resnet


@pytest.mark.parametrize(("blocks", "millions"), [(1, 0.08), (5, 0.464_154), (9, 0.85)])
def test_networks_have_the_published_layers_and_weights(blocks, millions):
    network = resnet(lambda features: torch.nn.Linear(features, 10), blocks=blocks)
    weights = sum(weight.numel() for weight in network.parameters())
    exactly = blocks == 5
    assert weights / 1e6 == pytest.approx(millions, abs=1e-9 if exactly else 0.006)
    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    layers = sum(isinstance(m, kinds) for m in network.modules())
    assert layers == 6 * blocks + 2
    features = network[:-3].eval()(torch.zeros(2, 3, 32, 32))
    assert features.shape == (2, 64, 8, 8)


def test_shortcuts_drop_pixels_and_add_empty_channels():
    inputs = torch.arange(32.0).view(1, 2, 4, 4)
    found = Subsampling(2, 3)(inputs)
    assert found.shape == (1, 5, 2, 2)
    assert found[0, 0].tolist() == [[0, 2], [8, 10]]
    assert found[0, 1].tolist() == [[16, 18], [24, 26]]
    assert not found[0, 2:].any()
