"""Constraints on known outputs: large samples, and fronts without a bound."""

import numpy as np
import pytest

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


def test_a_front_of_metrics_without_bounds():
    odds, labels = rare_tumours()
    found = metricopt.tune(
        odds, labels, "f1", constraints=[at_least("precision", 0)], progress=False
    )
    assert found.feasible == {"precision at least 0": 1.0}
    recall = found.front.values[:, 1]
    assert len(recall) > 3 and recall.diff().min() > 0
