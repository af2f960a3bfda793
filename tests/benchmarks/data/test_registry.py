"""The registry of data sets, and what it tells without loading one."""

import pytest

from benchmarks.data.registry import example_count
from metricopt.errors import ConfigError


def test_variants_tell_how_many_examples_they_have():
    assert example_count("digits", "full") == 1_797
    assert example_count("covtype", "full") == 581_012
    with pytest.raises(ConfigError, match="digits has no variant 'half'; known: full"):
        example_count("digits", "half")
