"""Embeddings and weights of examples."""

import pytest
import torch
from torch import nn

from baselines.learned_losses.example_weights import (
    FeatureEmbedding,
    LabelEmbedding,
    cross_entropies,
    example_weights,
)
from metricopt.errors import ShapeError


def test_weights_have_mean_one_and_follow_the_scores():
    weights = example_weights(torch.tensor([0.0, 2.0, -2.0]))
    assert weights.mean().item() == pytest.approx(1)
    assert weights.argsort().tolist() == [2, 0, 1]
    assert weights[1] / weights[0] == pytest.approx(2 * 0.880797, rel=1e-4)


def test_labels_are_one_hot():
    found = LabelEmbedding(3)(None, torch.tensor([2, 0]))
    assert found.tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("classes", [1, 3])
def test_cross_entropies_have_the_mean_of_the_loss(classes):
    outputs = torch.randn(6, classes)
    targets = torch.tensor([0, 1, 1, 0, 1, 0])
    expected = (
        nn.functional.cross_entropy(outputs, targets)
        if classes > 1
        else nn.functional.binary_cross_entropy_with_logits(
            outputs[:, 0], targets.float()
        )
    )
    assert torch.allclose(cross_entropies(outputs, targets).mean(), expected)


def test_components_of_features_have_unit_deviation():
    network = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 4))
    inputs, targets = torch.randn(300, 20), torch.arange(300) % 4
    embedding = FeatureEmbedding(network, inputs, targets, 4)
    found = embedding(inputs, targets)
    assert embedding.size == 10 and found.shape == (300, 10)
    assert torch.allclose(found.mean(0), torch.zeros(10), atol=1e-5)
    assert torch.allclose(found.std(0), torch.ones(10), atol=1e-4)
    other = embedding(inputs, (targets + 1) % 4)
    assert not torch.allclose(found, other, atol=0.1)


def test_a_network_without_a_linear_layer_is_refused():
    with pytest.raises(ShapeError, match="got Sequential without one"):
        FeatureEmbedding(
            nn.Sequential(nn.Flatten()), torch.ones(3, 2), torch.zeros(3).long(), 2
        )
