"""MOEW: what trials cost, and that they find weights which serve the metric."""

import pytest
import torch

from baselines.learned_losses.example_weights import LabelEmbedding
from baselines.network_methods.moew import MetricOptimizedExampleWeights, _Loss
from baselines.training.batches import PermutedBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.errors import ConfigError, DivergedError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from tests.baselines.toy_images import ToyImages, image_network

TRAINING = Training(3, 0.05, optimizer="sgd")


def trained(training=TRAINING, **settings):
    validation = Validation(make_metric("mcr"), ToyImages(seed=1))
    settings = {"rounds": 2, "per_round": 3, "search_epochs": 1} | settings
    result = MetricOptimizedExampleWeights(**settings).train(
        image_network(),
        PermutedBatches(ToyImages(), 16),
        validation,
        training=training,
        generator=make_generator("moew"),
    )
    return result, validation


def test_every_trial_is_one_query():
    result, validation = trained()
    assert result.queries == validation.queries == 2 * 3 + 3
    assert result.gradient_steps == (2 * 3 * 1 + 3) * 4
    assert len(result.notes["costs"]) == 6


def test_the_full_protocol_returns_the_best_trial():
    result, validation = trained(search_epochs=0)
    assert result.queries == 6
    assert result.gradient_steps == 6 * 3 * 4
    outputs = result.predict(validation.observe.inputs)
    value = make_metric("mcr").value(outputs, validation.observe.targets)
    assert value == min(result.notes["costs"]) == result.notes["observe_cost"]


@pytest.mark.parametrize("embedding", ["labels", "features"])
def test_nothing_is_left_on_the_network(embedding):
    result, _ = trained(embedding=embedding)
    assert not result.network._forward_pre_hooks
    assert len(result.notes["weights"]) == (4 if embedding == "labels" else 10)


def test_the_loss_weighs_examples_by_their_class():
    network = torch.nn.Linear(2, 2)
    loss = _Loss(network, torch.tensor([3.0, -3.0]).numpy(), LabelEmbedding(2))
    inputs, targets = torch.randn(4, 2), torch.tensor([0, 0, 1, 1])
    outputs = network(inputs)
    each = torch.nn.functional.cross_entropy(outputs, targets, reduction="none")
    high, low = torch.sigmoid(torch.tensor([3.0, -3.0])).tolist()
    weights = torch.tensor([high, high, low, low]) / ((high + low) / 2)
    assert torch.allclose(loss(outputs, targets), (weights * each).mean())


def test_trials_that_diverge_are_the_worst_and_are_survived():
    with pytest.raises(DivergedError):
        trained(Training(3, 1e20, optimizer="sgd"), search_epochs=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds=0"),
        ({"search_epochs": -1}, "search_epochs=-1"),
        ({"radius": 0.0}, "radius=0.0"),
        ({"embedding": "pixels"}, "'pixels'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        MetricOptimizedExampleWeights(**settings)
