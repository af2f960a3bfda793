"""Statistics of decisions, against naive loops and finite differences."""

import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    f1_score,
    jaccard_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
)

from metricopt.statistics.confusion import ConfusionStatistics
from tests.metricopt.drawn import seeded

N, CLASSES = 60, 4


def drawn(classes=CLASSES, rows=3):
    outputs = torch.randn(rows, N, classes, generator=seeded())
    targets = torch.randint(max(2, classes), (N,), generator=seeded(1))
    return outputs, targets


def naive_matrix(outputs, targets, weights, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.float64)
    for output, target, weight in zip(outputs, targets, weights, strict=True):
        # A single logit says 1 where it is 0 or more.
        scores = torch.cat([-output, output + 1e-9]) if len(output) == 1 else output
        predicted = int(scores.argmax())
        matrix[target, predicted] += float(weight)
    return matrix / matrix.sum(1, keepdim=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_exact_statistics_are_those_of_a_loop(weighted):
    outputs, targets = drawn()
    weights = torch.ones(3, N)
    if weighted:
        weights = torch.randint(3, (3, N), generator=seeded(2)).float()
    found = ConfusionStatistics().exact(outputs, targets, weights if weighted else None)
    for row in range(3):
        matrix = naive_matrix(outputs[row], targets, weights[row], CLASSES)
        prior = torch.bincount(targets, weights[row].double()) / weights[row].sum()
        recalls, shares = matrix.diagonal(), prior @ matrix
        expected = {
            "matrix": matrix.flatten(),
            "mean recalls": recalls.mean()[None],
            "sorted": recalls.sort().values,
            "rates": torch.cat([recalls, shares]),
        }
        assert found.keys() >= expected.keys()
        for name, values in expected.items():
            torch.testing.assert_close(found[name][row], values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("classes", [1, 2])
def test_two_classes_have_two_rates(classes):
    outputs, targets = drawn(classes)
    found = ConfusionStatistics().exact(outputs, targets)
    assert "matrix" not in found
    for row in range(3):
        matrix = naive_matrix(outputs[row], targets, torch.ones(N), 2)
        torch.testing.assert_close(found["rates"][row], matrix[:, 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("classes", [1, 2, CLASSES])
def test_smooth_statistics_tend_to_the_exact_ones(classes):
    outputs, targets = drawn(classes)
    sharp = ConfusionStatistics(temperature=1e-4)
    exact, smooth = sharp.exact(outputs, targets), sharp.smooth(outputs, targets)
    for name in exact:
        torch.testing.assert_close(smooth[name], exact[name], rtol=0, atol=1e-2)


def test_smooth_statistics_follow_the_outputs():
    outputs, targets = drawn()
    outputs = outputs.double().requires_grad_()
    statistics = ConfusionStatistics()

    def rates(outputs):
        return statistics.smooth(outputs, targets)["matrix"]

    assert torch.autograd.gradcheck(rates, outputs)


def test_a_class_without_examples_has_no_hits():
    outputs, targets = drawn()
    targets[targets == 2] = 1
    found = ConfusionStatistics().exact(outputs, targets)["rates"]
    assert (found[:, 2] == 0).all() and torch.isfinite(found).all()


@pytest.mark.parametrize("classes", [2, CLASSES])
def test_summaries_are_those_of_scikit_learn(classes):
    outputs, targets = drawn(classes, rows=1)
    decided = outputs[0].argmax(1)
    each, mean = {"average": None}, {"average": "macro"}
    found = ConfusionStatistics().exact(outputs, targets)
    expected = {
        "precisions": precision_score(targets, decided, **each),
        "f": f1_score(targets, decided, **each),
        "overlaps": jaccard_score(targets, decided, **each),
        "mean recalls": [recall_score(targets, decided, **mean)],
        "mean precisions": [precision_score(targets, decided, **mean)],
        "mean f": [f1_score(targets, decided, **mean)],
        "mean overlaps": [jaccard_score(targets, decided, **mean)],
        "accuracy": [accuracy_score(targets, decided)],
    }
    for name, values in expected.items():
        values = torch.as_tensor(values, dtype=torch.float64)
        torch.testing.assert_close(found[name][0], values, rtol=0, atol=1e-6)
    weights = [None] if classes == 2 else [None, "linear", "quadratic"]
    agreements = [cohen_kappa_score(targets, decided, weights=w) for w in weights]
    agreements.append(matthews_corrcoef(targets, decided))
    torch.testing.assert_close(
        found["agreements"][0], torch.tensor(agreements).double(), rtol=0, atol=1e-6
    )
