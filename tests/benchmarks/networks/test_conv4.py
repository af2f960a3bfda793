"""The networks of few-shot learning, by the sizes that publications give."""

import pytest
import torch

from benchmarks.networks.conv4 import conv4
from benchmarks.networks.sine_mlp import sine_mlp
from metricopt.errors import ConfigError

MINI = {"channels": 64, "inputs": 3, "side": 84, "outputs": 5, "shrink": 1, "seed": 0}
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


def test_images_are_averaged_before_the_first_convolution():
    images = torch.rand(2, 3, 64, 64)
    small = torch.nn.functional.avg_pool2d(images, 2)
    whole = conv4(**MINI | {"side": 64, "shrink": 2})
    half = conv4(**MINI | {"side": 32})
    assert size(whole) == size(half)
    torch.testing.assert_close(whole(images), half(small))


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
        conv4(**OMNIGLOT | {"shrink": 2})


def test_the_network_of_sine_waves():
    network = sine_mlp(seed=0)
    assert size(network) == 1_761
    assert network(torch.rand(7, 1)).shape == (7, 1)
    assert not torch.equal(network[0].weight, sine_mlp(seed=1)[0].weight)
