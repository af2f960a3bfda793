"""Black boxes of the suite: small cases by hand, and naive loops."""

import math

import pytest
import torch

from benchmarks.problems.black_boxes import BINS
from benchmarks.runs.spec import SUITE_METRICS, Unit, metric_of
from metricopt.errors import ConfigError

NAMES = (
    "matthews",
    "kappa",
    "f2",
    "two-worst-recalls",
    "random-cost",
    "calibration-error",
    "log-loss",
    "reciprocal-rank",
    "sure-accuracy",
)


def case(classes, examples=200):
    generator = torch.Generator().manual_seed(classes)
    targets = torch.randint(max(classes, 2), (examples,), generator=generator)
    outputs = 2 * torch.randn(examples, classes, generator=generator)
    return outputs, targets


def shares_of(outputs):
    """Probabilities of every example, in lists."""
    if outputs.shape[1] == 1:
        positive = [1 / (1 + math.exp(-x)) for x in outputs[:, 0].tolist()]
        return [[1 - p, p] for p in positive]
    return outputs.double().softmax(1).tolist()


def naive_calibration(outputs, targets):
    bins = [[] for _ in range(BINS)]
    for shares, target in zip(shares_of(outputs), targets.tolist(), strict=True):
        sure = max(shares)
        place = min(BINS - 1, max(0, math.ceil(sure * BINS) - 1))
        bins[place].append((shares.index(sure) == target) - sure)
    return sum(abs(sum(each)) for each in bins) / len(targets)


def naive_rank(outputs, targets):
    ranks = [
        sum(other >= shares[target] for other in shares)
        for shares, target in zip(shares_of(outputs), targets.tolist(), strict=True)
    ]
    return sum(1 / rank for rank in ranks) / len(ranks)


def naive_sure(outputs, targets):
    hits = [
        max(shares) >= 0.8 and shares.index(max(shares)) == target
        for shares, target in zip(shares_of(outputs), targets.tolist(), strict=True)
    ]
    return sum(hits) / len(hits)


def naive_log_loss(outputs, targets):
    logs = [
        -math.log(shares[target])
        for shares, target in zip(shares_of(outputs), targets.tolist(), strict=True)
    ]
    return sum(logs) / len(logs)


@pytest.mark.parametrize("classes", [1, 2, 6])
@pytest.mark.parametrize(
    ("name", "naive"),
    [
        ("calibration-error", naive_calibration),
        ("reciprocal-rank", naive_rank),
        ("sure-accuracy", naive_sure),
        ("log-loss", naive_log_loss),
    ],
)
def test_metrics_of_probabilities_are_their_formulas(name, naive, classes):
    outputs, targets = case(classes)
    found = SUITE_METRICS.get(name)().value(outputs, targets)
    assert found == pytest.approx(naive(outputs, targets), abs=1e-6)


def test_metrics_of_decisions_on_a_case_by_hand():
    # Class 1: 4 examples, 3 found; class 0: 6 examples, 4 found.
    targets = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    outputs = torch.tensor([1.0, 1, 1, -1, 1, 1, -1, -1, -1, -1])[:, None]
    expected = {
        "matthews": (3 * 4 - 2 * 1) / math.sqrt(5 * 4 * 6 * 5),
        "kappa": (0.7 - 0.5) / (1 - 0.5),
        "f2": 5 * 3 / (5 * 3 + 4 * 1 + 2),
        "two-worst-recalls": (3 / 4 + 4 / 6) / 2,
    }
    for name, value in expected.items():
        found = SUITE_METRICS.get(name)().value(outputs, targets)
        assert found == pytest.approx(value), name


def test_two_worst_recalls_are_of_classes():
    targets = torch.arange(4).repeat_interleave(2)
    predicted = torch.tensor([0, 0, 1, 0, 2, 2, 0, 0])
    outputs = torch.nn.functional.one_hot(predicted, 4).float()
    found = SUITE_METRICS.get("two-worst-recalls")().value(outputs, targets)
    assert found == pytest.approx((0 + 0.5) / 2)


def test_costs_are_drawn_by_seed():
    outputs, targets = case(5)
    one, other = (metric_of(Unit("random-cost", {"seed": s})) for s in (0, 1))
    matrix = one.matrix(5)
    predicted = outputs.argmax(1).tolist()
    pairs = zip(targets.tolist(), predicted, strict=True)
    expected = sum(matrix[i, j].item() for i, j in pairs) / len(predicted)
    assert one.value(outputs, targets) == pytest.approx(expected)
    assert one.value(outputs, targets) != other.value(outputs, targets)
    assert (matrix.diagonal() == 0).all() and matrix.max() <= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [1, 6])
def test_the_right_class_scores_best(name, classes):
    outputs, targets = case(classes)
    metric = SUITE_METRICS.get(name)()
    kinds = torch.nn.functional.one_hot(targets, max(classes, 2)).float()
    right = 40 * (2 * kinds - 1)
    best = metric.value(right[:, 1:] if classes == 1 else right, targets)
    other = metric.value(outputs, targets)
    assert best > other if metric.higher_is_better else best < other


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match="sure-accuracy"):
        metric_of(Unit("sure-accuracy", {"sureness": 1}))
