"""Ties of two classes, which are class 0 wherever the library decides."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score

from metricopt import Meaning, tune
from metricopt.reading.expected import Expected
from metricopt.reading.maps import Maps
from metricopt.statistics.labels import LabelStatistics


@cache
def forest():
    """Probabilities of two trees, of which a third are ties, and labels."""
    generator = np.random.default_rng(0)
    labels = (generator.random(300) < 0.4).astype(int)
    votes = generator.random((300, 2)) < np.where(labels, 0.7, 0.3)[:, None]
    return votes.mean(1), labels


@pytest.mark.parametrize("form", ["one", "two", "several"])
@pytest.mark.parametrize("queries", [6, 16])
def test_decisions_are_those_that_were_measured(form, queries):
    shares, labels = forest()
    decided = (shares > 0.5).astype(int)
    outputs = {
        "one": shares,
        "two": np.stack([1 - shares, shares], 1),
        "several": np.stack([shares, 1 - shares], 1),
    }[form]
    if form == "several":
        labels = np.stack([labels, 1 - labels], 1)
        decided = (outputs > 0.5).astype(int)
    found = tune(outputs, labels, "accuracy", queries=queries, progress=False)
    assert found.metric_before == accuracy_score(labels, decided)
    again = found.predict(outputs)
    assert found.metric_after == accuracy_score(labels, again)
    if not found.found.phi.any():
        assert np.array_equal(again, decided)


def test_a_metric_of_probabilities_decides_alike():
    torchmetrics = pytest.importorskip("torchmetrics.classification")
    shares, labels = forest()
    metric = torchmetrics.BinaryAccuracy()
    found = tune(shares, labels, metric, queries=6, progress=False)
    before = accuracy_score(labels, shares > 0.5)
    assert found.metric_before == pytest.approx(before)
    after = accuracy_score(labels, found.predict(shares))
    assert found.metric_after == pytest.approx(after)


def test_labels_maps_and_statistics_of_a_tie_are_0():
    several = Meaning(truth="multi-label")
    zeros, ones = torch.zeros(4, 3), torch.ones(4, 3, dtype=torch.int64)
    decided, _ = Expected("own", "labels").of(several, zeros, ones)
    assert not decided.any()
    dense = Meaning(layout="channels", truth="labels")
    pictures = torch.zeros(4, 1, 2, 2)
    truth = torch.ones(4, 2, 2, dtype=torch.int64)
    drawn, _ = Maps("own", None, "index").of(dense, pictures, truth)
    assert not drawn.any()
    counted = LabelStatistics().exact(zeros[None], ones)
    assert not counted["counts of all"].any()
