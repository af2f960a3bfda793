"""A copy of a pre-trained network for every test."""

import pytest
from torch import nn

from tests.metricopt.digits_network import pretrained


@pytest.fixture
def model() -> nn.Module:
    return pretrained()
