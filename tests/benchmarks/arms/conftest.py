"""Tests of arms share networks and parsed data with the tests of pipelines."""

import pytest


@pytest.fixture(autouse=True)
def folders(shared_cache):
    """Use the one cache."""
