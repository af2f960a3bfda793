"""Real data small enough for every method: breast cancer, malignant as positive."""

from typing import NamedTuple

import pytest
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

from metricopt.sampling import Split
from metricopt.seeding import make_generator


class Data(NamedTuple):
    train: Split
    observe: Split
    test: Split


@pytest.fixture(scope="session")
def data():
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs = torch.tensor(inputs, dtype=torch.float32)
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    targets = torch.tensor(labels == 0).long()
    order = torch.randperm(len(targets), generator=make_generator("split"))
    parts = order.split([330, 110, len(targets) - 440])
    return Data(*(Split(inputs[part], targets[part]) for part in parts))


@pytest.fixture
def network():
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        layers, width = [], 30
        for units in (20, 10):
            layers += [nn.Linear(width, units), nn.BatchNorm1d(units)]
            layers += [nn.LeakyReLU(), nn.Dropout(0.2)]
            width = units
        return nn.Sequential(*layers, nn.Linear(width, 1))
