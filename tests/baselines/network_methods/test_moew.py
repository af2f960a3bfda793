"""MOEW: what trials cost, and that they find weights which serve the metric."""

import pytest
import torch

from baselines.network_methods.moew import MetricOptimizedExampleWeights, weighted_loss
from baselines.training.optimization import Training
from metricopt.errors import DivergedError
from metricopt.reading.callables import make_metric
from tests.baselines.toy_images import TRAINING, train_on_images


def trained(training=TRAINING, **settings):
    settings = {"rounds": 2, "per_round": 3, "search_epochs": 1} | settings
    return train_on_images(MetricOptimizedExampleWeights(**settings), training)


def test_every_trial_is_one_query():
    result, validation = trained()
    assert result.queries == validation.queries == 2 * 3 + 3
    assert result.gradient_steps == (2 * 3 * 1 + 3) * 4
    assert len(result.notes["costs"]) == 6
    assert len(result.notes["weights"]) == 4


def test_the_full_protocol_returns_the_best_trial():
    result, validation = trained(search_epochs=0)
    assert result.queries == 6
    assert result.gradient_steps == 6 * 3 * 4
    outputs = result.predict(validation.observe.inputs)
    value = make_metric("mcr").value(outputs, validation.observe.targets)
    assert value == min(result.notes["costs"]) == result.notes["observe_cost"]


def test_the_loss_weighs_examples_by_their_class():
    loss = weighted_loss(torch.tensor([3.0, -3.0]).numpy())
    outputs, targets = torch.randn(4, 2), torch.tensor([0, 0, 1, 1])
    each = torch.nn.functional.cross_entropy(outputs, targets, reduction="none")
    high, low = torch.sigmoid(torch.tensor([3.0, -3.0])).tolist()
    weights = torch.tensor([high, high, low, low]) / ((high + low) / 2)
    assert torch.allclose(loss(outputs, targets), (weights * each).mean())


def test_trials_that_diverge_are_the_worst_and_are_survived():
    with pytest.raises(DivergedError):
        trained(Training(3, 1e20, optimizer="sgd"), search_epochs=0)
