"""Losses and weights of examples."""

import pytest
import torch

from baselines.learned_losses.example_weights import cross_entropies, example_weights
from baselines.losses.cross_entropy import cross_entropy


def test_weights_have_mean_one_and_follow_the_scores():
    weights = example_weights(torch.tensor([0.0, 2.0, -2.0]))
    assert weights.mean().item() == pytest.approx(1)
    assert weights.argsort().tolist() == [2, 0, 1]
    assert weights[1] / weights[0] == pytest.approx(2 * 0.880797, rel=1e-4)


@pytest.mark.parametrize("classes", [1, 3])
def test_cross_entropies_have_the_mean_of_the_loss(classes):
    outputs, targets = torch.randn(6, classes), torch.tensor([0, 1, 1, 0, 1, 0])
    found = cross_entropies(outputs, targets).mean()
    assert torch.allclose(found, cross_entropy(outputs, targets))
