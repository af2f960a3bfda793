"""Constraints on known outputs: large samples, and fronts without a bound."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict

import metricopt
from metricopt import at_least, at_most
from tests.metricopt.test_tune import rare_tumours


def test_a_large_sample_confirms_the_bounds():
    odds, labels = rare_tumours()
    many = 20_001 // len(labels) + 1
    found = metricopt.tune(
        np.tile(odds, many),
        np.tile(labels, many),
        "f1",
        constraints=[at_most("fpr", 0.03)],
        queries=20,
        progress=False,
    )
    (bound,) = found.bounds
    decided = found.predict(odds)
    assert bound.after == pytest.approx(decided[labels == 0].mean())
    assert bound.after <= 0.03
    assert found.searched < found.examples
    point = found.at(0)
    assert point.metric_after >= found.metric_after
    assert point.front is found.front


def test_a_bound_far_from_the_untouched_values_is_met():
    """Bootstrap samples differ in statistics that no shift of predictions moves."""
    inputs, values = load_diabetes(return_X_y=True)
    predicted = cross_val_predict(Ridge(), inputs, values, cv=3)

    def over(outputs, targets):
        return (outputs > targets).mean()

    found = metricopt.tune(
        predicted,
        values,
        "neg_mean_absolute_error",
        constraints=[at_least(over, 0.7)],
        queries=20,
        progress=False,
    )
    assert found.evidence.met_before == (0.0,)
    assert found.feasible["over at least 0.7"] > 0.95
    assert found.bounds[0].after == pytest.approx(
        (found.predict(predicted) > values).mean()
    )


def test_a_front_of_metrics_without_bounds():
    odds, labels = rare_tumours()
    found = metricopt.tune(
        odds, labels, "f1", constraints=[at_least("precision", 0)], progress=False
    )
    assert found.feasible == {"precision at least 0": 1.0}
    recall = found.front.values[:, 1]
    assert len(recall) > 3 and recall.diff().min() > 0
