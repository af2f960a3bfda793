"""Ranges of settings: what is inside, and what a message says of the rest."""

import math

import numpy as np
import pytest

from metricopt.errors import ConfigError, require_counts, require_ranges

INSIDE = [
    (">= 1", 1),
    ("> 0", 1e-9),
    ("in [0, 1)", 0.0),
    ("in (0, inf)", 5),
    ("> 0", None),
]
OUTSIDE = [
    *((">= 1", 0), ("> 0", 0.0), ("in [0, 1)", 1.0), ("in (0, 1]", 0.0)),
    *(("in [-1, 1]", -1.5), ("in (0, inf)", math.inf), (">= 0", math.nan)),
]


@pytest.mark.parametrize(("expected", "value"), INSIDE)
def test_numbers_in_their_range_pass(expected, value):
    assert require_ranges("it", {"rate": value, "other": -1}, rate=expected) is None


@pytest.mark.parametrize(("expected", "value"), OUTSIDE)
def test_a_number_outside_is_named_with_its_range(expected, value):
    with pytest.raises(ConfigError) as caught:
        require_ranges("Adam", {"rate": value}, rate=expected)
    assert str(caught.value) == f"Adam needs rate {expected}, got rate={value}"


@pytest.mark.parametrize("value", [1, 60_000, np.int64(3), None])
def test_counts_pass(value):
    assert require_counts("it", {"steps": value, "other": -1}, "steps") is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "Adam needs steps >= 1, got steps=0"),
        (2.0, "steps must be a whole number, got 2.0"),
        (True, "steps must be a whole number, got True"),
    ],
)
def test_what_is_no_count_is_named(value, message):
    with pytest.raises(ConfigError) as caught:
        require_counts("Adam", {"steps": value}, "steps")
    assert str(caught.value) == message
