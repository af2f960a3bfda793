"""Many architectures: what is reported holds, and the network comes back as it was."""

import copy
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss
from torch import nn

from metricopt import FinetuneOptions, finetune
from metricopt.methods.cma_es import CMAES
from tests.zoo.architectures import (
    EXAMPLES,
    OF_DIGITS,
    OF_IMAGES,
    SIDES,
    SMALL,
    digits,
    photographs,
)

BRIER = partial(brier_score_loss, labels=range(10), scale_by_half=True)
# Steps so small that the score gets better in about every second of them.
OPTIONS = FinetuneOptions(
    method=CMAES(deviation=0.05), queries=10, no_harm=False, progress=False
)


@torch.no_grad()
def alive(made, inputs):
    """A network whose outputs differ from image to image, as a trained one's do.

    Layers that start as identities or zeros are moved, and running statistics fit.
    """
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of timm and torchvision, at construction
        torch.manual_seed(0)
        network = made()
        for weight in network.parameters():
            if weight.ndim == 1 or weight.std() < 1e-3:
                weight.add_(0.3 * torch.randn_like(weight))
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.momentum = 1.0
        network.train()(inputs)
    return network.eval()


def problem(name):
    """The network, inputs and labels of the first and the second half."""
    if name in OF_DIGITS:
        made, inputs = OF_DIGITS[name], digits()[0]
    else:
        made, inputs = OF_IMAGES[name], photographs(SIDES.get(name, SMALL))
    halves = zip(inputs.split(EXAMPLES), digits()[1].split(EXAMPLES), strict=True)
    return alive(made, inputs), *halves


@torch.no_grad()
def direct(network, data):
    """Brier score of the network as it is, through small batches."""
    logits = torch.cat([network(batch) for batch in data[0].split(7)])
    return BRIER(data[1], logits.double().softmax(1))


def state_of(network):
    """What is not in its weights: classes, modes and hooks."""
    modules = [
        (type(each), each.training, len(each._forward_hooks))
        for each in network.modules()
    ]
    return modules, [weight.requires_grad for weight in network.parameters()]


def check_phi(found, inputs):
    """A phi of no small effect does in the network what it does in a batch of phi."""
    generator = torch.Generator().manual_seed(0)
    phi = 0.3 * torch.randn(2, found.adapter.size, generator=generator)
    with torch.no_grad():
        batched = found.adapter.predict(found.adapter.encode(inputs), phi)
        untouched = found.adapter.network(inputs)
        for one, expected in zip(phi, batched, strict=True):
            with found.adapter.attach(one):
                applied = found.adapter.network(inputs)
            scale = float(expected.abs().max())
            torch.testing.assert_close(applied, expected, rtol=0, atol=1e-4 * scale)
            assert (applied - untouched).abs().max() > 1e-2 * scale


@pytest.mark.parametrize("name", OF_DIGITS)
def test_the_seed_decides_the_weights(name):
    first, second = (problem(name)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
    # Layers made when the module was imported have other weights in every process.
    assert not any(
        torch.equal(first[key], value)
        for key, value in OF_DIGITS[name]().state_dict().items()
        if value.ndim > 1
    )


@pytest.mark.parametrize("name", [*OF_IMAGES, *OF_DIGITS])
def test_architecture(name):
    network, train, observe = problem(name)
    weights, kept = copy.deepcopy(network.state_dict()), state_of(network)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()
    before = direct(network, observe)
    found = finetune(
        network,
        train=train,
        observe=observe,
        loss=nn.CrossEntropyLoss(),
        metric=BRIER,
        options=OPTIONS,
    )
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_equal(np.random.get_state(), numpy_state)
    assert found.metric_before == pytest.approx(before, abs=1e-6)
    assert found.phi.any()
    found.apply()
    assert found.metric_after == pytest.approx(direct(network, observe), abs=1e-6)
    found.remove()
    check_phi(found, observe[0])
    assert direct(network, observe) == before
    assert state_of(network) == kept
    left = network.state_dict()
    assert all(torch.equal(left[key], weights[key]) for key in weights)
