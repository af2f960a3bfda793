"""Line searches of output offsets, against naive loops and on real data."""

from dataclasses import replace

import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import scale

from metricopt.on_outputs import exact_offsets
from metricopt.on_outputs.exact_offsets import OffsetLines, calibrated, offsets_of
from metricopt.on_outputs.statistics_value import StatisticsValueFunction
from metricopt.reading.outputs import class_logits
from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.contract import SeveralStatistics
from tests.metricopt.drawn import seeded

KIND = SeveralStatistics((ConfusionStatistics(),))


def scores(load, features):
    """Return outputs [N, C] of a classifier by a few features, and labels [N]."""
    inputs, labels = load(return_X_y=True)
    inputs = scale(inputs)[:, :features]
    model = LogisticRegression().fit(inputs[::2], labels[::2])
    logs = torch.tensor(model.predict_log_proba(inputs[1::2])).float()
    return logs, torch.tensor(labels[1::2])


def macro_f(outputs, targets):
    return f1_score(targets, outputs.argmax(1), average="macro")


def value_of(metric, outputs, targets):
    """Return a value function that has seen a metric at some offsets."""
    classes = outputs.shape[1]
    offsets = torch.randn(12, 1, classes, generator=seeded()).cumsum(0) / 3
    moved = torch.cat([outputs[None], outputs + offsets])
    costs = torch.tensor([1 - metric(each, targets) for each in moved]).double()
    groups = KIND.exact(moved, targets)
    return StatisticsValueFunction(groups, costs, KIND.families(groups))


def lines_of(metric, outputs, targets, rows=1):
    value = value_of(metric, outputs, targets)
    weights = torch.ones(rows, len(targets))
    repeated = outputs.expand(rows, -1, -1)
    return OffsetLines(value, KIND, repeated, targets, weights, caution=0.0)


@pytest.mark.parametrize("place", [0, 2])
def test_matrices_of_a_line_are_those_of_its_thresholds(monkeypatch, place):
    monkeypatch.setattr(exact_offsets, "SHARED", 0.0)
    monkeypatch.setattr(exact_offsets, "WIDTH", 1e-6)
    outputs, targets = scores(load_wine, 2)
    lines = lines_of(macro_f, outputs, targets)
    offsets = torch.tensor([[0.3, -0.2, 0.1]])
    margins, others = lines._margins(offsets, place)
    edges = margins.sort(1).values  # a bin for every example
    tried = (edges[:, 1:] + edges[:, :-1])[:, ::7] / 2
    found = lines._matrices(margins, others, edges, tried, place)[0]
    for threshold, matrix in zip(tried[0], found, strict=True):
        moved = outputs + offsets
        moved[:, place] += threshold
        expected = torch.zeros(3, 3)
        for label, decided in zip(targets, moved.argmax(1), strict=True):
            expected[label, decided] += 1
        torch.testing.assert_close(matrix, expected, rtol=0, atol=0.5)
        assert (matrix - expected).abs().sum() <= 2  # one example on the edge


def test_the_best_of_all_thresholds_is_found(monkeypatch):
    monkeypatch.setattr(exact_offsets, "SHARED", 0.0)
    monkeypatch.setattr(exact_offsets, "WIDTH", 1e-6)
    outputs, targets = scores(load_breast_cancer, 3)
    moved = lines_of(macro_f, outputs, targets).swept(torch.zeros(1, 2))
    found = macro_f(outputs + offsets_of(moved, 2), targets)
    margins = outputs[:, 0] - outputs[:, 1]
    every = [macro_f(outputs + torch.tensor([0, t + 1e-6]), targets) for t in margins]
    assert found >= max(every) - 0.004
    assert max(every) > macro_f(outputs, targets)


def test_sweeps_improve_the_metric_of_three_classes():
    outputs, targets = scores(load_wine, 2)
    biased = outputs + torch.tensor([2.0, 0.0, -2.0])
    lines = lines_of(macro_f, biased, targets)
    moved = lines.swept(lines.swept(torch.zeros(1, 3)))
    found = macro_f(biased + offsets_of(moved, 3), targets)
    assert found > macro_f(biased, targets) + 0.1
    assert found >= macro_f(outputs, targets) - 0.03


def test_rows_are_searched_as_if_each_were_alone():
    outputs, targets = scores(load_wine, 2)
    both = lines_of(macro_f, outputs, targets, rows=2)
    weights = both.weights.clone()
    weights[1, ::5] = 0
    both = replace(both, weights=weights)
    found = both.swept(torch.zeros(2, 3))
    for row in range(2):
        own = slice(row, row + 1)
        alone = replace(both, outputs=outputs[None], weights=weights[own])
        torch.testing.assert_close(
            alone.swept(torch.zeros(1, 3)), found[own], rtol=0, atol=0.02
        )


def test_calibration_finds_the_scale_and_the_shift_of_logits():
    outputs, targets = scores(load_wine, 4)
    weights = torch.ones(1, len(targets))
    right = calibrated(outputs[None], targets, weights)
    bent = 3 * outputs + torch.tensor([2.0, 0.0, -1.0])
    found = calibrated(bent[None], targets, weights)
    assert found.scale.item() == pytest.approx(right.scale.item() / 3, rel=0.02)
    torch.testing.assert_close(
        found.probabilities, right.probabilities, rtol=0, atol=0.02
    )


@pytest.mark.parametrize("columns", [1, 3])
def test_offsets_decide_as_what_was_moved(columns):
    classes = max(columns, 2)
    moved = torch.randn(1, classes, generator=seeded())
    offsets = offsets_of(moved, columns)
    assert offsets.shape == (1, columns)
    outputs = torch.randn(50, columns, generator=seeded(1))
    wanted = (class_logits(outputs) + moved).argmax(1)
    found = class_logits(outputs + offsets).argmax(1)
    assert torch.equal(found, wanted)
