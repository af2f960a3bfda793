"""`tune` on predicted values: far from 0, hardly different, and with a bound."""

import re

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import cross_val_predict

from metricopt import ShapeError, at_least, tune


def mean_error(true, predicted):
    return float((predicted - true).mean())


@pytest.fixture(scope="module")
def halves():
    """Out-of-fold predictions and values: of one half, and of the other."""
    inputs, values = load_diabetes(return_X_y=True)

    def of(alpha):
        predicted = cross_val_predict(Ridge(alpha), inputs, values)
        return [(predicted[part::2], values[part::2]) for part in (0, 1)]

    return of


def test_values_far_from_zero_gain_what_others_do(halves):
    (own, truth), (others, other_truth) = halves(30.0)
    own, truth = own + 1_000, truth + 1_000
    found = tune(own, truth, mean_absolute_error, queries=14)
    # Predictions that hardly differ need a scale of about 10.
    assert found.scales.item() == pytest.approx(10, rel=0.2)
    shifted = found.shifted(others + 1_000)
    assert shifted == pytest.approx(
        (others + 1_000) * found.scales.item() + found.offsets.item(), rel=1e-9
    )
    before = mean_absolute_error(other_truth, others)
    after = mean_absolute_error(other_truth + 1_000, shifted)
    assert before > 60 and after < 56
    inputs = torch.tensor(others + 1_000)
    for network in (found.found.merge(), found.found.apply()):
        assert network(inputs).numpy() == pytest.approx(shifted)


@pytest.mark.parametrize("more", [0, 100_000, -100_000])
def test_a_bound_in_units_of_the_values_costs_no_more_than_it_has_to(halves, more):
    (own, truth), (others, other_truth) = more + np.array(halves(3.0))
    bound = at_least(mean_error, 10.0)
    found = tune(own, truth, mean_absolute_error, constraints=[bound], queries=14)
    shifted = found.shifted(others)
    assert 10 < mean_error(truth, found.shifted(own)) < 25
    # As it is, with a shift alone that meets the bound, it is 57.
    assert mean_absolute_error(truth, found.shifted(own)) < 53
    assert mean_error(other_truth, shifted) > 8


def test_values_of_half_precision_have_errors_beyond_its_squares(halves):
    (own, truth), _ = halves(30.0)
    own = (20 * own).astype(np.float16)
    found = tune(own, 20 * truth, mean_absolute_error, queries=14)
    shifted = found.shifted(own)
    assert shifted.dtype == np.float32
    assert mean_absolute_error(20 * truth, shifted) == pytest.approx(found.metric_after)
    assert found.metric_after < 0.9 * found.metric_before
    merged = found.found.merge()(torch.tensor(own)).float()
    assert merged.numpy() == pytest.approx(shifted, abs=2.1)  # as far as half can be
    with pytest.raises(ShapeError, match=re.escape("[N], got float16 [221, 1]")):
        found.shifted(own[:, None])
