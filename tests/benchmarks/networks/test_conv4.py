"""The networks of few-shot learning, by the sizes that publications give."""

import pytest
import torch

from benchmarks.networks.conv4 import conv4
from benchmarks.networks.sine_mlp import sine_mlp
from metricopt.errors import ConfigError

MINI = {"channels": 64, "inputs": 3, "side": 84, "outputs": 5, "seed": 0}
OMNIGLOT = MINI | {"inputs": 1, "side": 28}


def size(network):
    return sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, 112_261), ({"outputs": 20}, 113_236)]
)
def test_omniglot_has_the_weights_of_the_released_code(changes, expected):
    assert size(conv4(**OMNIGLOT | changes)) == expected


def test_miniimagenet_has_the_weights_of_the_released_code():
    network = conv4(**MINI)
    assert size(network) == 121_093
    assert [size(network[place]) for place in (0, 1)] == [1_792, 128]
    assert network(torch.rand(2, 3, 84, 84)).shape == (2, 5)


def test_strides_stand_in_for_pooling_and_round_up():
    pooled, strided = conv4(**OMNIGLOT), conv4(**OMNIGLOT, strided=True)
    images = torch.rand(2, 1, 28, 28)
    assert strided(images).shape == pooled(images).shape
    assert size(strided) - size(pooled) == (2 * 2 - 1) * 64 * 5
    assert [part.stride for part in strided if hasattr(part, "stride")] == [(2, 2)] * 4


def test_batch_norm_knows_its_batch_alone():
    network, images = conv4(**OMNIGLOT), torch.rand(4, 1, 28, 28)
    trained = network(images)
    network(5 * images + 3)
    assert torch.equal(network.eval()(images), trained)
    assert not list(network.buffers())
    assert not torch.allclose(network(images[:2]), trained[:2])


def test_weights_are_those_of_the_seed():
    first, again, other = (conv4(**OMNIGLOT | {"seed": s}) for s in (0, 0, 1))
    images = torch.rand(4, 1, 28, 28)
    assert torch.equal(first(images), again(images))
    assert not torch.equal(first(images), other(images))


def test_images_that_four_halvings_leave_nothing_of_are_refused():
    with pytest.raises(ConfigError, match="need images of 16 pixels or more, got 14"):
        conv4(**OMNIGLOT | {"side": 14})


def test_the_network_of_sine_waves():
    network = sine_mlp(seed=0)
    assert size(network) == 1_761
    assert network(torch.rand(7, 1)).shape == (7, 1)
    assert not torch.equal(network[0].weight, sine_mlp(seed=1)[0].weight)
