"""Registered metrics on degenerate and wrong inputs."""

import pytest
import torch

from metricopt.errors import DataError, ShapeError
from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import predict_labels


def value(name, outputs, targets):
    return METRICS.get(name)().value(outputs, targets)


DEGENERATE = {
    # name: (all-negative targets, none or all predicted positive; then all-positive)
    "mcr": (0.0, 1.0, 1.0, 0.0),
    "f1": (0.0, 0.0, 0.0, 1.0),
    "f-macro": (1.0, 0.0, 0.0, 1.0),
    "jaccard": (0.0, 0.0, 0.0, 1.0),
    "jaccard-macro": (1.0, 0.0, 0.0, 1.0),
    "jaccard-legacy": (1.0, 0.0, 0.0, 1.0),
    "g-mean": (1.0, 0.0, 0.0, 1.0),
    "worst-class-error": (0.0, 1.0, 1.0, 0.0),
    "aucpr": (0.0, 0.0, 1.0, 1.0),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_one_class_targets(name):
    actual = tuple(
        value(name, torch.full((4, 1), logit), torch.full((4,), label))
        for label in (0, 1)
        for logit in (-1.0, 1.0)
    )
    assert actual == DEGENERATE[name]


def test_the_first_of_tied_classes_is_predicted():
    assert predict_labels(torch.zeros(2, 3, 1)).tolist() == [[0, 0, 0], [0, 0, 0]]
    for classes in (2, 3):
        assert predict_labels(torch.ones(4, classes)).tolist() == [0, 0, 0, 0]
    assert predict_labels(torch.tensor([[1.0, 1.0], [0.0, 1.0]])).tolist() == [0, 1]


def test_g_mean_does_not_underflow_over_many_classes():
    targets = torch.arange(1500).repeat(2)
    outputs = torch.nn.functional.one_hot(targets, 1500).float()
    outputs[1500:] = outputs[1500:].roll(1, 1)
    assert value("g-mean", outputs, targets) == pytest.approx(0.5)


def test_average_precision_of_saturated_probabilities():
    outputs = torch.tensor([[0.0, 60.0], [0.0, 50.0], [0.0, 40.0]])
    assert value("aucpr", outputs, torch.tensor([1, 0, 0])) == 1.0


FOUR, THREE = torch.tensor([0, 1, 0, 1]), torch.zeros(3, 1)
BINARY = "metric '{}' is binary and needs C = 1 or 2 outputs per example, got C = 3"
RANGE = r"metric '{}' needs labels in \[0, 1\], got labels from -1 to 2"
FLOATS = r"needs integer labels of shape \[N\], got torch.float32 of shape \[3\]"


@pytest.mark.parametrize(
    ("names", "outputs", "targets", "error", "text"),
    [
        (["f1", "jaccard"], torch.zeros(4, 3), FOUR, ShapeError, BINARY),
        (["top-5"], torch.zeros(4, 4), FOUR, ShapeError, "C >= 5 class .* got C = 4"),
        (["top-1"], torch.zeros(4, 1), FOUR, ShapeError, "C >= 2 class .* got C = 1"),
        (["mcr", "aucpr"], THREE, torch.tensor([2, 0, -1]), DataError, RANGE),
        (["mcr"], THREE, torch.zeros(3), DataError, FLOATS),
    ],
)
def test_what_is_wrong_is_named(names, outputs, targets, error, text):
    for name in names:
        with pytest.raises(error, match=text.replace("{}", name)):
            value(name, outputs, targets)
