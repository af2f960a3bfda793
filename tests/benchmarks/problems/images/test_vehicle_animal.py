"""The asymmetric cost of mistakes on CIFAR-10."""

import pytest
import torch

from benchmarks.runs.spec import Unit, metric_of


def test_the_cost_of_mistakes_is_asymmetric():
    metric = metric_of(Unit("vehicle-animal-cost"))
    logits = torch.nn.functional.one_hot(torch.tensor([3, 0, 9, 4, 0]), 10).float()
    # A truck called a cat; a deer called an airplane; truck, deer and airplane right.
    targets = torch.tensor([9, 4, 9, 4, 0])
    assert metric.value(logits, targets) == pytest.approx((1 + 0.2) / 5)
    swapped = metric.value(logits, torch.tensor([4, 1, 9, 4, 0]))
    assert swapped == pytest.approx((0.1 + 0.1) / 5)
