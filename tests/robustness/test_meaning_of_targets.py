"""Outputs and targets that look like others: logarithms, shares, labels from 1."""

import pytest
import sklearn.metrics as sk
import torch
from torch import nn
from torch.nn.functional import cross_entropy, nll_loss

from metricopt import DataError
from tests.robustness.heads import HEADS, network, run, vectors

WIDE = {"low": -1e4, "high": 1e4}


@pytest.mark.parametrize("axis", [1, -1], ids=["rows", "tokens"])
def test_logarithms_of_probabilities_stay_normalised(axis):
    """Offsets were added to them: their exponentials did not sum to 1 any more."""
    inputs, digits = vectors("digits")
    if axis == -1:
        inputs, digits = inputs.view(60, 8, 8), digits[:, None].expand(-1, 8)
    model = network(inputs.shape[-1], 10, nn.LogSoftmax(axis))

    def loss(outputs, truth):
        return nll_loss(outputs.flatten(0, -2), truth.flatten())

    found = run(model, (inputs, digits), loss, sk.accuracy_score)
    assert found.meaning.kind == "log-probabilities"
    assert "logarithms of probabilities" in found.summary()
    model = found.apply()
    outputs = model(inputs)
    found.remove()
    assert bool(found.phi[-10:].any())
    assert torch.allclose(outputs.exp().sum(-1), torch.ones(digits.shape), atol=1e-6)
    right = sk.accuracy_score(digits.flatten(), outputs.argmax(-1).flatten())
    assert found.metric_after == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("name", ["one logit", "sigmoid", "several logits"])
def test_shares_of_labels_are_no_numbers(name):
    """Logits were compared with them as predicted values: a wrong mean error."""
    head = HEADS[name]
    model, inputs, targets = head.problem()
    data, error = (inputs, 0.1 + 0.8 * targets), sk.mean_absolute_error
    with pytest.raises(DataError, match="expects numbers as targets, but here"):
        run(model, data, head.loss, error, **WIDE)

    def squares(outputs, truth):
        return (outputs - truth).square().mean()

    better = {"higher_is_better": False, "high": 1e4}
    found = run(model, data, head.loss, squares, **better)
    direct = squares(model(data[0]), data[1]).item()
    assert found.metric_before == pytest.approx(direct, abs=1e-6)
    told = run(model, data, head.loss, error, outputs="values", **WIDE)
    direct = (model(data[0]) - data[1]).abs().mean().item()
    assert told.metric_before == pytest.approx(direct, abs=1e-6)


def test_labels_that_begin_with_1_are_told():
    """They were read by the loss and the metric alone, without a word."""
    inputs, digits = vectors("digits")

    def loss(outputs, truth):
        return cross_entropy(outputs, truth - 1)

    def accuracy(outputs, truth):
        return (outputs.argmax(1) == truth - 1).float().mean()

    data = (inputs, digits + 1)
    found = run(network(64, 10), data, loss, accuracy, higher_is_better=True)
    said = "targets are whole numbers from 1 to 10, no labels of 10 classes"
    assert any(each.startswith(said) for each in found.warnings)
    with pytest.raises(DataError, match=said):
        run(network(64, 10), data, loss, sk.accuracy_score)
