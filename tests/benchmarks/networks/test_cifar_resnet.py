"""Residual networks: the weights and layers of the published ones."""

import pytest
import torch

from benchmarks.networks.cifar_resnet import (
    Subsampling,
    resnet8,
    resnet32,
    resnet56,
)


def test_resnet32_is_the_published_one():
    network = resnet32(lambda features: torch.nn.Linear(features, 10))
    assert sum(weight.numel() for weight in network.parameters()) == 464_154
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    # With the linear layer these are its 32 layers.
    assert len(convolutions) == 31
    features = network[:-3].eval()(torch.zeros(2, 3, 32, 32))
    assert features.shape == (2, 64, 8, 8)
    assert network.eval()(torch.zeros(2, 3, 8, 8)).shape == (2, 10)


@pytest.mark.parametrize(
    ("make", "layers", "millions"), [(resnet8, 8, 0.08), (resnet56, 56, 0.85)]
)
def test_other_depths_have_as_many_layers_and_weights(make, layers, millions):
    network = make(lambda features: torch.nn.Linear(features, 10))
    weights = sum(weight.numel() for weight in network.parameters())
    assert weights / 1e6 == pytest.approx(millions, abs=0.006)
    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    assert sum(isinstance(m, kinds) for m in network.modules()) == layers


def test_shortcuts_drop_pixels_and_add_empty_channels():
    inputs = torch.arange(32.0).view(1, 2, 4, 4)
    found = Subsampling(2, 3)(inputs)
    assert found.shape == (1, 5, 2, 2)
    assert found[0, 0].tolist() == [[0, 2], [8, 10]]
    assert found[0, 1].tolist() == [[16, 18], [24, 26]]
    assert not found[0, 2:].any()
