"""DynamicBias and FiLM: what they refuse, and what they pay for."""

import pytest
import torch
from torch import Tensor, nn

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.errors import ConfigError, ShapeError
from tests.metricopt import adapter_networks as networks
from tests.metricopt.adapter_networks import IMAGES, resnet
from tests.metricopt.drawn import seeded


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"sites": ["stage2.bn3"]},
            r"unknown site 'stage2.bn3' in ResNet; nearest: 'stage2.bn[12]'",
        ),
        ({"sites": []}, "one or more different modules, got \\[\\]"),
        ({"sites": ["stem.1"] * 2}, "one or more different modules"),
        ({"sites": "stem.1"}, "a list of module names, 'stages' or None, got 'stem.1'"),
        ({"sites": ["unused"]}, "site 'unused' is never called"),
        ({"form": "indirect"}, "'shared', 'direct', 'shift', got 'indirect'"),
        ({"size": 0}, "size must be at least 1, got 0"),
        (
            {"form": "direct", "size": 128},
            "size must be 32 in the direct form, .* each of 16 channels, got 128",
        ),
        (
            {"form": "shift", "size": 32},
            "size must be 16 in the shift form, a shift for each .*, got 32",
        ),
    ],
)
def test_film_settings_that_are_refused(settings, message):
    network = resnet()
    network.add_module("unused", nn.BatchNorm2d(4))
    with pytest.raises(ConfigError, match=message):
        FiLM(network, IMAGES, **settings)


class _Sum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1)


class _Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class _Listed(nn.Module):
    def forward(self, x: tuple[Tensor, Tensor]) -> list[Tensor]:
        return list(x)


def test_film_outputs_that_are_refused():
    inputs = torch.randn(4, 3)
    flat = nn.Sequential(nn.Linear(3, 2), _Sum())
    message = r"site '1' must give \[N, C, ...\], got shape"
    with pytest.raises(ConfigError, match=message):
        FiLM(flat, inputs, sites=["1"])
    with pytest.raises(ConfigError, match=r"site '1' must give .* got no tensor"):
        FiLM(nn.Sequential(nn.Linear(3, 2), _Pair()), inputs, sites=["1"])
    nested = nn.Sequential(nn.Linear(3, 2), _Pair(), _Listed())
    message = "must return one tensor, or a tuple of tensors, got list"
    with pytest.raises(ConfigError, match=message):
        FiLM(nested, inputs, sites=["0"])
    with pytest.raises(ConfigError, match="no normalisation layer and no convolution"):
        FiLM(flat, inputs)


def test_networks_that_do_not_treat_examples_one_by_one():
    network = networks.randomise(networks.BatchStatistics())
    with pytest.raises(ConfigError, match="must treat the examples of a batch one by"):
        FiLM(network, IMAGES)
    total = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(0))
    message = "one output for each of 4 examples, got shape"
    with pytest.raises(ShapeError, match=message):
        FiLM(total, IMAGES)


def test_dynamic_bias_settings_that_are_refused():
    with pytest.raises(ConfigError, match="size must be at least 1, got 0"):
        DynamicBias(networks.mlp(), size=0)
    message = r"site '1' must be an nn.Linear, got BatchNorm1"
    with pytest.raises(ConfigError, match=message):
        DynamicBias(networks.mlp(), size=2, site="1")
    with pytest.raises(ConfigError, match="unknown site 'fc' in Sequential"):
        DynamicBias(networks.mlp(), size=2, site="fc")
    with pytest.raises(ConfigError, match=r"Tanh has no nn.Linear"):
        DynamicBias(nn.Tanh(), size=2)
    network = resnet()
    network.add_module("unused", nn.Linear(2, 2))
    with pytest.raises(ConfigError, match="site 'unused' is never called"):
        DynamicBias(network, size=2, site="unused").encode(IMAGES)


def test_only_networks_that_write_on_their_features_pay_for_copies():
    def copies(network: nn.Module) -> bool:
        adapter = FiLM(networks.randomise(network), IMAGES, sites=["stage2.bn2"])
        return adapter._settled().copies

    assert copies(networks.ResNet(inplace=True))
    assert not copies(networks.ResNet())


def test_shifts_of_linear_and_norm_layers_are_their_biases():
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5)
    ).eval()
    inputs = torch.randn(7, 3, 4, 4, generator=seeded(3))
    adapter = FiLM(network, inputs, sites=["1", "4"], form="shift")
    assert adapter.size == 9
    phi = torch.randn(1, 9, generator=seeded(4))
    found = adapter.predict(adapter.encode(inputs), phi)[0]
    with torch.no_grad():
        network[1].bias += phi[0, :4]
        network[4].bias += phi[0, 4:]
        expected = network(inputs)
    torch.testing.assert_close(found, expected)
