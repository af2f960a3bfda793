"""Macro average precision and the cost-weighted error, over many classes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from metricopt.errors import ConfigError, DataError, MetricError, ShapeError
from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import (
    CountMetric,
    confusion_counts,
    confusion_matrices,
)
from metricopt.metrics.counted import CostWeightedError, WorstClassError
from metricopt.reading.callables import make_metric
from tests.metricopt.drawn import draw, labels, seeded
from tests.metricopt.metrics.checked import check_metric
from tests.metricopt.metrics.test_metrics import problems, steady

COSTS = torch.tensor([[0.0, 0.5, 1.0], [0.25, 0.0, 0.125], [1.0, 0.75, 0.0]])


def sklearn_macro(scores, targets):
    """Average scikit-learn's average precision over the classes in the labels."""
    present = targets.unique().tolist()
    parts = [average_precision_score(targets == c, scores[:, c]) for c in present]
    return sum(parts) / len(parts)


def assert_macro(outputs, targets):
    for name, scores in (
        ("aucpr", outputs.double().softmax(-1)),
        ("aucpr-macro-logits", outputs),
    ):
        found = make_metric(name).values(outputs, targets)
        for actual, row in zip(found.tolist(), scores, strict=True):
            assert actual == pytest.approx(sklearn_macro(row, targets), abs=1e-12)


@steady
@given(problems(classes=4))
def test_macro_average_precision_equals_sklearn_with_ties(problem):
    assert_macro(*problem)


@pytest.mark.parametrize("levels", [3, 40, 10**9])
def test_macro_average_precision_equals_sklearn_on_many_examples(levels):
    outputs, targets = draw(2, 3000, 10), labels(3000, classes=9)
    assert_macro((outputs * levels).round() / levels, targets)


def test_the_order_by_logit_is_not_that_by_probability():
    # Example 1 has the greater logit of class 0, example 0 the greater probability.
    outputs = torch.tensor([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 5.0, 0.0]])
    targets = torch.tensor([0, 1, 1])
    assert make_metric("aucpr").value(outputs, targets) == 1.0
    assert make_metric("aucpr-macro-logits").value(outputs, targets) == 0.75


def test_single_logits_have_one_order():
    outputs, targets = draw(60, 1), labels(60, classes=2)
    expected = average_precision_score(targets, outputs[:, 0])
    for name in ("aucpr", "aucpr-macro-logits"):
        actual = make_metric(name).value(outputs, targets)
        assert actual == pytest.approx(expected, abs=1e-12)


def test_two_raw_logits_are_ranked_class_by_class():
    outputs, targets = draw(60, 2), labels(60, classes=2)
    actual = make_metric("aucpr-macro-logits").value(outputs, targets)
    assert actual == pytest.approx(sklearn_macro(outputs, targets), abs=1e-12)
    margins = outputs[:, 1] - outputs[:, 0]
    positive_only = average_precision_score(targets, margins)
    found = make_metric("aucpr").value(outputs, targets)
    assert found == pytest.approx(positive_only, abs=1e-12)


def test_ranking_by_constant_scores_gives_the_share_of_each_class():
    targets = torch.tensor([0, 0, 0, 2])
    for name in ("aucpr", "aucpr-macro-logits"):
        assert make_metric(name).value(torch.zeros(4, 3), targets) == (0.75 + 0.25) / 2


def test_average_precision_refuses_what_has_no_order():
    outputs, targets = draw(5, 3), labels(5, classes=3)
    outputs[2, 1] = math.inf
    with pytest.raises(MetricError, match="'aucpr' was given outputs with NaN"):
        make_metric("aucpr").value(outputs, targets)
    assert 0 < make_metric("aucpr-macro-logits").value(outputs, targets) <= 1
    outputs[2, 1] = math.nan
    with pytest.raises(MetricError, match="'aucpr-macro-logits' was given outputs wi"):
        make_metric("aucpr-macro-logits").value(outputs, targets)


def test_worst_class_error_is_that_of_the_class_recognised_worst():
    hot = torch.eye(4)
    outputs = hot[[0, 0, 0, 1, 2, 0, 0, 1]]
    targets = torch.tensor([0, 0, 0, 0, 2, 2, 2, 1])
    # Class 0: 3 of 4; class 1: 1 of 1; class 2: 1 of 3; class 3 does not occur.
    assert WorstClassError().value(outputs, targets) == pytest.approx(2 / 3)


@pytest.mark.parametrize("classes", [1, 4])
@steady
@given(data=st.data())
def test_matrices_hold_the_counts(classes, data):
    problem = data.draw(problems(classes=classes))
    matrices, counts = confusion_matrices(*problem), confusion_counts(*problem)
    diagonal = matrices.diagonal(dim1=1, dim2=2)
    assert matrices.dtype == torch.float64
    assert torch.equal(diagonal, counts.true_positives)
    assert torch.equal(matrices.sum(2) - diagonal, counts.false_negatives)
    assert torch.equal(matrices.sum(1) - diagonal, counts.false_positives)


def naive_cost(outputs, targets, costs):
    total = 0.0
    for logits, label in zip(outputs.tolist(), targets.tolist(), strict=True):
        total += float(costs[label, logits.index(max(logits))])
    return total / len(targets)


@steady
@given(problems(classes=3))
def test_mean_cost_equals_a_loop(problem):
    outputs, targets = problem
    metric = CostWeightedError(COSTS)
    found = metric.values(outputs, targets)
    assert found.dtype == torch.float64
    for actual, row in zip(found.tolist(), outputs, strict=True):
        assert actual == metric.value(row, targets)
        assert actual == pytest.approx(naive_cost(row, targets, COSTS))


def test_rows_of_many_classes_equal_single_rows_exactly():
    costs = torch.rand(200, 200, generator=seeded(2))
    metric = CostWeightedError(costs.fill_diagonal_(0))
    outputs, targets = draw(3, 500, 200), labels(500, classes=200)
    assert metric.values(outputs, targets).tolist() == [
        metric.value(row, targets) for row in outputs
    ]


def test_costs_have_the_label_first():
    costs = torch.tensor([[0.0, 0.25], [1.0, 0.0]])
    logits = torch.tensor([[1.0], [1.0], [-1.0], [2.0]])
    targets = torch.tensor([0, 0, 1, 1])
    for outputs in (logits, torch.cat([-logits, logits], 1)):
        value = CostWeightedError(costs).value(outputs, targets)
        assert value == (0.25 + 0.25 + 1.0) / 4


def test_equal_costs_are_the_error_rate_and_the_check_passes():
    outputs, targets = draw(4, 50, 5), labels(50, classes=5)
    metric = CostWeightedError(1 - torch.eye(5))
    assert torch.equal(
        metric.values(outputs, targets), make_metric("mcr").values(outputs, targets)
    )
    assert (metric.higher_is_better, metric.low, metric.high) == (False, 0.0, 1.0)
    initial = check_metric(metric, outputs[0], targets)
    assert initial == metric.value(outputs[0], targets)
    assert metric.name == "cost-weighted-error"
    assert make_metric(metric) is metric
    # The matrix of the caller is copied.
    costs = COSTS.double()
    metric = CostWeightedError(costs)
    costs[0, 1] = 0.0
    outputs = torch.eye(3)[[1]]
    assert metric.value(outputs, torch.tensor([0])) == 0.5


def changed(row, column, cost):
    costs = COSTS.clone()
    costs[row, column] = cost
    return costs


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (torch.zeros(3), ShapeError, r"must be \[C, C\] with C >= 2, got \[3\]"),
        (torch.zeros(2, 3), ShapeError, r"C >= 2, got \[2, 3\]"),
        (torch.zeros(1, 1), ShapeError, r"C >= 2, got \[1, 1\]"),
        (changed(0, 1, -0.5), ConfigError, r"must be in \[0, 1\], got -0.5"),
        (changed(2, 0, 1.5), ConfigError, r"must be in \[0, 1\], got 1.5"),
        (changed(1, 2, math.nan), ConfigError, r"must be in \[0, 1\], got nan"),
        (changed(1, 1, 0.5), ConfigError, "but class 1 has 0.5 on the diagonal"),
    ],
)
def test_what_is_no_cost_matrix(matrix, error, text):
    with pytest.raises(error, match=text):
        CostWeightedError(matrix)


def test_bad_inputs_of_the_cost_weighted_error():
    metric = CostWeightedError(COSTS)
    text = "has costs of 3 classes and needs outputs of as many, got C = 4"
    with pytest.raises(ShapeError, match=text):
        metric.value(torch.zeros(2, 4), torch.tensor([0, 1]))
    with pytest.raises(DataError, match=r"needs labels in \[0, 2\], got .* 0 to 3"):
        metric.value(torch.zeros(2, 3), torch.tensor([0, 3]))
    with pytest.raises(MetricError, match="'cost-weighted-error' was given outputs w"):
        metric.value(torch.full((2, 3), math.nan), torch.tensor([0, 1]))


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_metrics_of_counts_are_those_of_the_confusion_matrix(columns):
    outputs, targets = draw(3, 50, columns), labels(50, classes=max(columns, 2))
    matrices = confusion_matrices(outputs, targets)
    kinds = [METRICS.get(name) for name in METRICS]
    metrics = [kind() for kind in kinds if issubclass(kind, CountMetric)]
    suited = [each for each in metrics if columns <= 2 or not each.binary]
    assert len(suited) >= 5
    suited += [CostWeightedError(COSTS)] * (columns == 3)
    for metric in suited:
        expected = metric.values(outputs, targets)
        torch.testing.assert_close(metric.of_matrices(matrices), expected)
