"""Norms of meta-gradients: recorded, counted, refused where none is finite."""

import math
import re
import warnings

import pytest

from metricopt.checkpoints.gradient_norms import MOST_SKIPPED, GradientNorms
from metricopt.errors import DivergedError


def recorded(norms, iterations):
    found = GradientNorms(iterations)
    allowed = [found.allows_step(n, i, "rest") for i, n in enumerate(norms)]
    return found, allowed


def test_steps_on_norms_that_are_not_finite_are_left_out():
    norms = [1.0, math.inf, math.nan, 2.0]
    found, allowed = recorded(norms, 10)
    assert allowed == [True, False, False, True]
    assert found.skipped == [1, 2] and len(found.every) == 4
    message = "2 of 4 meta-steps were left out, since their meta-gradient was not"
    with pytest.warns(UserWarning, match=message + r".*in iteration 1, counted"):
        found.warn()


def test_nothing_is_said_where_no_step_was_left_out():
    found, allowed = recorded([1.0, 0.0], 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.warn()
    assert all(allowed) and not found.skipped


@pytest.mark.parametrize(
    ("norms", "iterations", "message"),
    [
        ([math.nan] * 3, 3, "not finite 3 times in a row, up to iteration 2: rest"),
        (
            [1.0] + [math.inf] * MOST_SKIPPED,
            1_000,
            f"not finite {MOST_SKIPPED} times in a row, up to iteration 100: rest",
        ),
    ],
)
def test_too_many_in_a_row_are_an_error(norms, iterations, message):
    recorded(norms[:-1], iterations)
    with pytest.raises(DivergedError, match=re.escape(message)):
        recorded(norms, iterations)
