"""The adapter a network gets when none is named."""

import pytest
import torch
from torch import Tensor, nn

import metricopt
from metricopt import ConfigError, DynamicBias, FiLM
from metricopt.adapters.output_offsets import OutputOffsets
from tests.metricopt import adapter_networks


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 8)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.body(inputs)
        return hidden[:, :3], hidden[:, 3:]


def test_the_automatic_adapter_suits_the_network():
    convolutional, images = adapter_networks.resnet(), adapter_networks.IMAGES
    adapter = metricopt.auto_adapter(convolutional, images, offsets=False)
    assert isinstance(adapter, FiLM)
    assert (adapter.form, adapter.size) == ("direct", 32)
    sized = metricopt.auto_adapter(convolutional, images, size=7, offsets=False)
    assert sized.size == 7
    settings = {"sites": "stages", "offsets": False}
    assert len(metricopt.auto_adapter(convolutional, images, **settings).sites) > 1
    wide = nn.Sequential(nn.Conv2d(3, 129, 1), nn.AvgPool2d(8), nn.Flatten())
    generated = metricopt.auto_adapter(wide, images, offsets=False)
    assert (generated.form, generated.size) == ("generator", 128)


def test_output_offsets_stand_beside_it():
    convolutional, images = adapter_networks.resnet(), adapter_networks.IMAGES
    adapter = metricopt.auto_adapter(convolutional, images)
    assert isinstance(adapter, OutputOffsets)
    outputs = convolutional(images).shape[1]
    assert adapter.parts == {
        "adapter": slice(32),
        "offsets": slice(32, 32 + outputs),
        "scales": slice(32 + outputs, 32 + 2 * outputs),
    }
    assert adapter.size == 32 + 2 * outputs


def test_a_network_with_many_outputs_or_a_tuple_gets_no_offsets():
    many = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1025))
    adapter = metricopt.auto_adapter(many, torch.randn(2, 6))
    assert isinstance(adapter, DynamicBias)
    inner = metricopt.auto_adapter(Pair(), torch.randn(2, 6))
    assert isinstance(inner, DynamicBias)
    with pytest.raises(ConfigError, match="returns one tensor, got a tuple"):
        OutputOffsets(inner, torch.randn(2, 6))


def test_a_network_without_convolutions_gets_biases():
    inputs = torch.randn(2, 6)
    network = adapter_networks.mlp()
    adapter = metricopt.auto_adapter(network, inputs, offsets=False)
    assert isinstance(adapter, DynamicBias)
    assert (adapter.size, adapter.sites[0].name) == (16, "0")
    other = metricopt.auto_adapter(network, inputs, size=3, sites=["4"], offsets=False)
    assert (other.size, other.sites[0].name) == (3, "4")
    for sites in ("stages", ["0", "4"]):
        with pytest.raises(ConfigError, match=r"takes one site, .*, got"):
            metricopt.auto_adapter(network, inputs, sites=sites)


@pytest.mark.parametrize(("outputs", "offset"), [(1024, True), (1025, False)])
def test_up_to_1024_outputs_get_offsets(outputs, offset):
    adapter = metricopt.auto_adapter(nn.Linear(4, outputs), torch.randn(2, 4))
    assert ("offsets" in adapter.parts) == offset


class OfOne(nn.Module):
    """A class of every image, or of every pixel."""

    def __init__(self, *, dense: bool) -> None:
        super().__init__()
        self.features, self.dense = nn.Conv2d(3, 6, 3, padding=1), dense
        self.classes = nn.Conv2d(6, 6, 1)

    def forward(self, images: Tensor) -> Tensor:
        outputs = self.classes(torch.relu(self.features(images)))
        return outputs if self.dense else outputs.mean((-2, -1))


@pytest.mark.parametrize("dense", [True, False])
def test_one_image_without_a_batch_is_changed_as_in_one(dense):
    network, images = OfOne(dense=dense), torch.randn(4, 3, 6, 6)
    adapter = metricopt.auto_adapter(network, images)
    plain = network(images)
    adapter.attach(0.3 * torch.randn(adapter.size))
    # As many rows as channels: these must not be taken for them.
    torch.testing.assert_close(network(images[0]), network(images)[0])
    assert not torch.allclose(network(images), plain)
