"""Settings of registered metrics, declared directions, and outputs of many tensors."""

import pytest
import sklearn.metrics as sk
import torch

from metricopt.errors import ConfigError, ShapeError
from metricopt.metrics.counted import F1
from metricopt.reading.callables import make_metric
from tests.metricopt.metrics.test_metrics_callables import (
    BINARY,
    CLASSES,
    FOUR,
    ONE,
    Accumulator,
    share_right,
)


def test_settings_of_a_registered_metric():
    metric = make_metric("top-k", k=2)
    assert metric.name == "top-2"
    ranks = (FOUR.gather(1, CLASSES[:, None]) < FOUR).sum(1)
    assert metric.value(FOUR, CLASSES) == (ranks < 2).double().mean()


@pytest.mark.parametrize(
    ("spec", "settings", "text"),
    [
        ("top-k", {"q": 1}, "metric 'top-k' has no setting 'q'; known: k"),
        ("f1", {"k": 1, "q": 2}, "metric 'f1' has no setting 'k', 'q'; known: none"),
        ("top-k", {"k": 0}, "top-k needs k >= 1, got 0"),
        (share_right, {"k": 1}, "metric given by name, got k with a function"),
        (F1(), {"k": 1}, "metric given by name, got k with a F1"),
    ],
)
def test_settings_that_are_refused(spec, settings, text):
    with pytest.raises(ConfigError, match=text):
        make_metric(spec, **settings)


@pytest.mark.parametrize(
    ("spec", "higher", "declared"),
    [
        ("f1", None, False),
        (F1(), True, False),
        (sk.f1_score, None, False),
        (sk.f1_score, True, False),
        (sk.f1_score, False, True),
        (Accumulator(), None, False),
        (Accumulator(), False, True),
        (share_right, True, True),
    ],
)
def test_a_direction_is_declared_where_the_metric_does_not_tell(spec, higher, declared):
    metric = make_metric(spec, higher_is_better=higher)
    assert metric.direction_declared == declared


def test_a_callable_may_read_several_tensors_and_any_targets():
    def share_of_pairs(outputs, targets):
        scores, boxes = outputs
        assert not scores.requires_grad
        return sum(
            float(box[0] > 0) == target["label"]
            for box, target in zip(boxes, targets, strict=True)
        ) / len(scores)

    scores, boxes = torch.randn(2, 5, 3, requires_grad=True), torch.randn(2, 5, 4)
    targets = [{"label": float(number % 2)} for number in range(5)]
    metric = make_metric(share_of_pairs, higher_is_better=True)
    found = metric.values((scores, boxes), targets)
    expected = [share_of_pairs((scores[i].detach(), boxes[i]), targets) for i in (0, 1)]
    assert found.tolist() == expected
    assert metric.value((scores[1], boxes[1]), targets) == expected[1]
    with pytest.raises(ShapeError, match="each of the 5 outputs, got targets for 4"):
        metric.values((scores, boxes), targets[:4])


def test_functions_of_arrays_read_one_tensor():
    for spec in (sk.f1_score, Accumulator()):
        with pytest.raises(ShapeError, match=r"got a tuple of 2 tensors"):
            make_metric(spec).value((ONE, ONE), BINARY)
