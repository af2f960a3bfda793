"""The MLP: what is deployed has the outputs of what was trained."""

import copy

import pytest
import torch
from torch import nn

from benchmarks.networks.mlp import deployed, mlp, padded

HIDDEN = (100, 30, 10)


def make_network(inputs=7, hidden=HIDDEN, seed=0):
    """Return an MLP whose batch norms have seen data, as after training."""
    network = mlp(inputs, hidden, slope=0.01, dropout=0.2, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for norm in network.modules():
            if isinstance(norm, nn.BatchNorm1d):
                norm.running_mean.normal_(generator=generator)
                norm.running_var.uniform_(0.5, 2.0, generator=generator)
                norm.weight.uniform_(0.5, 2.0, generator=generator)
                norm.bias.normal_(generator=generator)
    return network


def test_the_mlp_is_the_papers():
    network = make_network(inputs=14)
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    widths = [(layer.in_features, layer.out_features) for layer in linear]
    assert widths == [(14, 100), (100, 30), (30, 10), (10, 1)]
    kinds = [type(layer) for layer in network[:4]]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.LeakyReLU, nn.Dropout]
    assert len(network) == 3 * 4 + 1
    assert network(torch.randn(5, 14)).shape == (5, 1)


@pytest.mark.parametrize("hidden", [(100, 30, 10), (16, 32), (5,), (33, 17, 3)])
def test_deployed_equals_the_plain_network(hidden):
    network = make_network(hidden=hidden).eval()
    inputs = torch.randn(64, 7, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = network(inputs)
        found = deployed(network)(inputs)
    assert expected.std() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_what_is_deployed_is_a_frozen_copy_in_evaluation_mode():
    network = make_network().train()
    before = copy.deepcopy(network.state_dict())
    found = deployed(network)
    assert not any(weight.requires_grad for weight in found.parameters())
    assert not any(layer.training for layer in found.modules())
    assert not any(isinstance(layer, nn.Dropout) for layer in found)
    assert all(weight.requires_grad for weight in network.parameters())
    assert all(layer.training for layer in network.modules())
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    inputs = torch.randn(4, 7)
    outputs = found(inputs)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    assert torch.equal(found(inputs), outputs)


def test_widths_are_padded_to_multiples_of_16():
    linear = [layer for layer in deployed(make_network()) if hasattr(layer, "weight")]
    shapes = [tuple(layer.weight.shape) for layer in linear]
    # The first layer and its norm keep their width, and so does the output.
    assert shapes == [(100, 7), (100,), (32, 100), (16, 32), (1, 16)]


@pytest.mark.parametrize(("units", "expected"), [(1, 16), (16, 16), (17, 32)])
def test_padded_layers_have_dead_units(units, expected):
    layer = nn.Linear(3, units)
    wide = padded(layer, 5)
    assert (wide.in_features, wide.out_features) == (5, expected)
    inputs = torch.randn(6, 5)
    outputs = wide(inputs)
    torch.testing.assert_close(outputs[:, :units], layer(inputs[:, :3]))
    assert not outputs[:, units:].any()


def test_seeds_decide_the_weights_and_nothing_else_does():
    state = torch.get_rng_state()
    one, same, other = make_network(seed=3), make_network(seed=3), make_network(seed=4)
    for left, right in zip(one.parameters(), same.parameters(), strict=True):
        assert torch.equal(left, right)
    assert not torch.equal(one[0].weight, other[0].weight)
    torch.manual_seed(1)
    again = mlp(7, HIDDEN, slope=0.01, dropout=0.2, seed=3)
    assert torch.equal(again[0].weight, one[0].weight)
    torch.set_rng_state(state)
    mlp(7, HIDDEN, slope=0.01, dropout=0.2, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
