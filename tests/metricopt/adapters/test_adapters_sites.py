"""DynamicBias and FiLM themselves: their formulas, their sites, their errors."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.adapters.sites import find_sites
from tests.metricopt import adapter_networks as networks
from tests.metricopt.adapter_networks import IMAGES, resnet


def test_dynamic_bias_is_phi_concatenated_to_the_input():
    network = networks.mlp()
    adapter = DynamicBias(network, size=5, seed=3)
    inputs, phi = torch.randn(4, 6), torch.randn(2, 5)
    features = adapter.encode(inputs)
    # The first product is kept.
    assert adapter.is_cut and len(features) == 1
    assert torch.equal(features[0], network[0](inputs))
    extra = adapter.projection.T.float()
    for row, outputs in zip(phi, adapter.predict(features, phi), strict=True):
        weight = torch.cat([network[0].weight, extra], dim=1)
        both = torch.cat([inputs, row.expand(4, 5)], dim=1)
        hidden = F.linear(both, weight, network[0].bias)
        torch.testing.assert_close(outputs, network[1:](hidden))


def test_dynamic_bias_weights_have_the_scale_of_the_layer():
    adapter = DynamicBias(nn.Linear(40, 500), size=60)
    assert adapter.projection.shape == (60, 500)
    assert float(adapter.projection.std()) == pytest.approx(0.1, rel=0.02)
    assert abs(float(adapter.projection.mean())) < 0.002


def test_dynamic_bias_takes_the_layer_that_runs_first():
    class Reversed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 2)
            self.body = nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x))

    assert DynamicBias(Reversed(), size=2).sites[0].name == "body"
    assert DynamicBias(nn.Linear(3, 2), size=2).sites[0].name == ""


def test_dynamic_bias_shifts_every_token():
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    adapter = DynamicBias(network, size=2)
    inputs, phi = torch.randn(5, 7, 3), torch.randn(2, 2)
    shift = (phi @ adapter.projection.float())[:, None, None, :]
    expected = torch.tanh(network[0](inputs)[None] + shift)
    outputs = adapter.predict(adapter.encode(inputs), phi)
    torch.testing.assert_close(outputs, expected)


def test_film_scales_and_shifts_every_channel():
    network = resnet()
    adapter = FiLM(network, IMAGES, sites=["stage2.bn2"], size=7)
    phi = torch.randn(2, 7)
    scale, shift = (phi @ adapter.projection.float()).chunk(2, dim=1)
    block = network.stage2
    hidden = network.stage1(network.stem(IMAGES))
    normal = block.bn2(block.conv2(F.relu(block.bn1(block.conv1(hidden)))))
    outputs = adapter.predict(adapter.encode(IMAGES), phi)
    for b in range(2):
        modulated = torch.empty_like(normal)
        for c in range(16):
            modulated[:, c] = normal[:, c] * (1 + scale[b, c]) + shift[b, c]
        last = F.relu(modulated + block.skip(hidden))
        torch.testing.assert_close(outputs[b], network.head(last.mean((2, 3))))


def test_film_direct_is_the_generator_with_its_coefficients():
    network = resnet()
    sites = ["stem.1", "stage2.bn2"]
    generator = FiLM(network, IMAGES, sites=sites, size=6, seed=1)
    direct = FiLM(network, IMAGES, sites=sites, form="direct")
    assert direct.size == 2 * (4 + 16)
    phi = torch.randn(3, 6)
    coefficients = phi @ generator.projection.float()
    found = direct.predict(direct.encode(IMAGES), coefficients)
    expected = generator.predict(generator.encode(IMAGES), phi)
    torch.testing.assert_close(found, expected)


def test_film_direct_orders_scales_before_shifts():
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Conv2d(2, 1, 1))
    adapter = FiLM(network, IMAGES, sites=["0", "1"], form="direct")
    phi = torch.tensor([[0.1, 0.2, 0.3, 1.0, 2.0, 3.0]])
    first = network[0](IMAGES)
    first = first * torch.tensor([1.1, 1.2]).view(2, 1, 1)
    first = first + torch.tensor([1.0, 2.0]).view(2, 1, 1)
    expected = network[1](first) * 1.3 + 3.0
    found = adapter.predict(adapter.encode(IMAGES), phi)[0]
    torch.testing.assert_close(found, expected)


def test_film_generator_scale_and_seed():
    network = resnet()
    first = FiLM(network, IMAGES, size=400, seed=1)
    again = FiLM(network, IMAGES, size=400, seed=1)
    other = FiLM(network, IMAGES, size=400, seed=2)
    more = FiLM(network, IMAGES, sites=["stem.1", "stage2.bn2"], size=400, seed=1)
    assert torch.equal(first.projection, again.projection)
    assert not torch.equal(first.projection, other.projection)
    assert float(first.projection.std()) == pytest.approx(1 / math.sqrt(400), rel=0.03)
    assert torch.equal(first.projection[:, :16], more.projection[:, 4:20])
    assert not torch.equal(first.projection[:, :16], first.projection[:, 16:])


def names_of(network, sites):
    return [site.name for site in find_sites(network, IMAGES, sites)]


def test_automatic_sites():
    network = resnet()
    assert names_of(network, None) == ["stage2.bn2"]
    assert names_of(network, "stages") == ["stage1.bn2", "stage2.bn2"]
    convolutions = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 3)
    )
    assert names_of(convolutions, None) == ["3"]
    assert names_of(convolutions, "stages") == ["1", "3"]
    assert FiLM(network, IMAGES).size == 128
    staged = FiLM(network, IMAGES, sites="stages").sites
    assert [site.name for site in staged] == ["stage1.bn2", "stage2.bn2"]


def test_only_what_follows_the_site_is_run():
    network = resnet()
    adapter = FiLM(network, IMAGES)
    features = adapter.encode(IMAGES)
    assert [tuple(value.shape) for value in features] == [(4, 16, 4, 4)] * 2
    called = []
    for name, module in network.named_modules():
        module.register_forward_hook(lambda *_, name=name: called.append(name))
    adapter.predict(features, torch.zeros(2, 128))
    assert called == ["head"]


@pytest.mark.parametrize(
    ("network", "cut"),
    [
        (networks.ResNet(), True),
        (networks.ResNet(inplace=True), True),
        (networks.DynamicInside(), True),
        (networks.ShapeAware(), True),
        (networks.Dynamic(), False),
    ],
)
def test_what_can_be_cut(network, cut):
    adapter = FiLM(networks.randomise(network), IMAGES, sites=["stage2.bn2"])
    assert adapter.is_cut == cut
    if not cut:
        assert adapter.encode(IMAGES)[0] is IMAGES


def test_a_cut_that_would_change_numbers_is_not_made():
    class Discarded(networks.ResNet):
        def forward(self, x: Tensor) -> Tensor:
            x = self.stage2(self.stage1(self.stem(x)))
            F.relu_(x.sub_(1))  # the graph does not show that this is needed
            return self.head(x.mean((2, 3)))

    adapter = FiLM(networks.randomise(Discarded()), IMAGES, size=4)
    assert not adapter.is_cut
    phi = torch.randn(2, 4)
    outputs = adapter.predict(adapter.encode(IMAGES), phi)
    with adapter.attach(phi[1]):
        torch.testing.assert_close(outputs[1], adapter.network(IMAGES))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_dtype_follows_the_network(dtype):
    network, inputs = resnet().to(dtype), IMAGES.to(dtype)
    adapter = FiLM(network, inputs)
    features = adapter.encode(inputs)
    assert adapter.is_cut
    for phi in (torch.zeros(2, 128, dtype=dtype), torch.zeros(2, 128)):
        assert adapter.predict(features, phi).dtype == dtype


def test_channels_last_is_kept():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    network = network.to(memory_format=torch.channels_last)
    images = IMAGES.to(memory_format=torch.channels_last)
    adapter = FiLM(network, images)
    outputs = adapter.predict(adapter.encode(images), torch.zeros(3, 128))
    flat = outputs.flatten(0, 1)
    assert flat.is_contiguous(memory_format=torch.channels_last)


def test_tokens_keep_their_channels_last():
    network = nn.Sequential(nn.Linear(3, 6), nn.LayerNorm(6))
    inputs = torch.randn(4, 5, 3)
    adapter = FiLM(network, inputs, form="direct")
    phi = torch.randn(1, 12)
    expected = network(inputs) * (1 + phi[0, :6]) + phi[0, 6:]
    found = adapter.predict(adapter.encode(inputs), phi)[0]
    torch.testing.assert_close(found, expected)
