"""A pre-trained network, trained once, and a copy of it for every test."""

import copy

import pytest
from torch import nn

from tests.metricopt.digits_network import pretrained, splits


@pytest.fixture(scope="session")
def theta() -> nn.Module:
    return pretrained(splits()[0])


@pytest.fixture
def model(theta: nn.Module) -> nn.Module:
    return copy.deepcopy(theta)
