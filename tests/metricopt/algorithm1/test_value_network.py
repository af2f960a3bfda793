"""The value function as a network: layers, standardisation, saving and loading."""

import pytest
import torch
from torch import nn

from metricopt.algorithm1.value_function import (
    Standardisation,
    ValueFunction,
)
from tests.metricopt.drawn import seeded


@pytest.fixture
def value_function():
    found = ValueFunction(7, seeded(3))
    phi = torch.randn(64, 7, generator=seeded(4))
    found.standardise(
        Standardisation(phi.mean(0), phi.std(0), torch.tensor(0.3), torch.tensor(0.2))
    )
    found(phi)
    return found.eval()


def test_layers_and_shapes(value_function):
    widths = [
        (layer.in_features, layer.out_features)
        for layer in value_function.modules()
        if isinstance(layer, nn.Linear)
    ]
    assert widths == [(7, 64), (64, 32), (32, 32), (32, 16), (16, 1)]
    phi = torch.randn(5, 7, generator=seeded())
    assert value_function.embed(phi).shape == (5, 16)
    assert (value_function.embed(phi) >= 0).all()
    assert value_function(phi).shape == (5,)
    assert value_function(phi[:0]).shape == (0,)


def test_prediction_undoes_the_standardisation(value_function):
    phi = torch.randn(5, 7, generator=seeded())
    score = value_function.score(value_function.embed(phi))
    torch.testing.assert_close(value_function(phi), 0.3 + 0.2 * score)
    scaled = (phi - value_function.phi_mean) / value_function.phi_deviation
    torch.testing.assert_close(value_function.body(scaled), value_function.embed(phi))
    # A new one standardises nothing.
    new = ValueFunction(7, seeded()).eval()
    assert torch.equal(new(phi), new.head(new.body(phi)).squeeze(1))


def test_other_cost_constants_leave_predictions_as_they_are(value_function):
    phi = torch.randn(9, 7, generator=seeded())
    before, score = value_function(phi), value_function.score(value_function.embed(phi))
    value_function.rescale(torch.tensor(0.25), torch.tensor(0.02))
    torch.testing.assert_close(value_function(phi), before)
    assert value_function.cost_mean == 0.25
    assert value_function.cost_deviation == torch.tensor(0.02)
    # In the new units the same prediction is another score.
    found = value_function.score(value_function.embed(phi))
    torch.testing.assert_close(found, (0.3 + 0.2 * score - 0.25) / 0.02)


def test_rows_are_independent_in_evaluation(value_function):
    phi = torch.randn(5, 7, generator=seeded())
    alone = torch.cat([value_function(row[None]) for row in phi])
    torch.testing.assert_close(value_function(phi), alone)


def test_weights_come_from_the_generator():
    state = ValueFunction(4, seeded(1)).state_dict()
    for name, weight in ValueFunction(4, seeded(1)).state_dict().items():
        assert torch.equal(weight, state[name])
    other = ValueFunction(4, seeded(2))
    assert not torch.equal(other.head.weight, state["head.weight"])


def test_the_network_has_the_gradient_of_finite_differences(value_function):
    exact = value_function.double()
    phi = torch.randn(3, 7, generator=seeded(6), dtype=torch.float64)
    assert torch.autograd.gradcheck(exact, (phi.requires_grad_(),), eps=1e-7)
