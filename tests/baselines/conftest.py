"""What tests of the baselines start from."""

import pytest

from tests.baselines.breast_cancer import breast_cancer, dropout_network


@pytest.fixture(scope="session")
def data():
    return breast_cancer()


@pytest.fixture
def network():
    return dropout_network()
