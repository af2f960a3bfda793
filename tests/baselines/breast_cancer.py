"""Real data small enough for every method: breast cancer, malignant as positive."""

from functools import cache
from typing import NamedTuple

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import Split


class Data(NamedTuple):
    train: Split
    observe: Split
    test: Split


@cache
def breast_cancer():
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs = torch.tensor(inputs, dtype=torch.float32)
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    targets = torch.tensor(labels == 0).long()
    order = torch.randperm(len(targets), generator=make_generator("split"))
    parts = order.split([330, 110, len(targets) - 440])
    return Data(*(Split(inputs[part], targets[part]) for part in parts))


def dropout_network():
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        layers, width = [], 30
        for units in (20, 10):
            layers += [nn.Linear(width, units), nn.BatchNorm1d(units)]
            layers += [nn.LeakyReLU(), nn.Dropout(0.2)]
            width = units
        return nn.Sequential(*layers, nn.Linear(width, 1))
