"""What a metric may return, and the check of a metric before training."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from metricopt.errors import DataError, MetricError, RangeError, ShapeError
from metricopt.metrics.base import from_cost, to_cost
from metricopt.reading.callables import make_metric
from metricopt.reading.meaning import PLAIN
from metricopt.reading.metric import check_direction
from metricopt.tasks.judge import bound_metric
from tests.metricopt.metrics.checked import LABELLED, check_metric

OUTPUTS = torch.tensor([[1.0], [-2.0], [0.5], [-0.1], [3.0]])
TARGETS = torch.tensor([1, 0, 0, 1, 1])


def accuracy(outputs, targets):
    return ((outputs[:, 0] > 0) == (targets == 1)).double().mean()


def returning(result, **settings):
    settings = {"higher_is_better": True, "name": "mine", **settings}
    return make_metric(lambda outputs, targets: result, **settings)


HALVES = [0.5, np.float32(0.5), np.array(0.5), np.array([0.5]), torch.tensor(0.5)]
HALVES += [torch.tensor([[0.5]], dtype=torch.float16), Fraction(1, 2)]


def test_numbers_integers_and_rounding_are_accepted():
    for result in HALVES:
        value = returning(result).value(OUTPUTS, TARGETS)
        assert type(value) is float
        assert value == 0.5
    for result in (1, np.int64(1), torch.tensor(1), 1 + 1e-12):
        assert returning(result).value(OUTPUTS, TARGETS) == 1.0


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("0.5", "metric 'mine' must return a number, got str '0.5'"),
        (b"1", "metric 'mine' must return a number, got bytes"),
        (None, "metric 'mine' must return a number, got NoneType 'None'"),
        (True, "metric 'mine' must return a number, got bool 'True'"),
        (np.bool_(True), "metric 'mine' must return a number, got bool"),
        (torch.tensor(False), "metric 'mine' must return a number, got Tensor"),
        (0.5 + 0j, "metric 'mine' must return a number, got complex"),
        ([0.5], "metric 'mine' must return a number, got list"),
        (torch.zeros(3), r"one number, got Tensor of shape \[3\]"),
        (np.zeros((2, 2)), r"one number, got ndarray of shape \[2, 2\]"),
        (torch.zeros(0), r"one number, got Tensor of shape \[0\]"),
        (math.nan, "metric 'mine' returned nan"),
        (math.inf, "metric 'mine' returned inf"),
    ],
)
def test_anything_else_is_refused(result, text):
    metric = returning(result)
    with pytest.raises(MetricError, match=text):
        metric.value(OUTPUTS, TARGETS)
    with pytest.raises(MetricError, match=text):
        check_metric(metric, OUTPUTS, TARGETS)
    with pytest.raises(MetricError, match=text):
        metric.values(OUTPUTS[None], TARGETS)


@pytest.mark.parametrize(
    ("result", "promise"),
    [
        (1.5, {"low": 0, "high": 1}),
        (1.5, {"high": 1}),
        (-0.1, {"low": 0}),
        (-0.1, {"low": 0, "high": 1}),
        (7.0, {"low": 8.0}),
    ],
)
def test_a_promise_that_is_broken_is_named(result, promise):
    text = rf"'mine' returned {result:g}, outside its range \[.*\], which low and high"
    with pytest.raises(RangeError, match=text):
        returning(result, **promise).value(OUTPUTS, TARGETS)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.3, 1.7, -2.0], (0, 1)),  # the first one fits
        ([350.0, 1.0, 5000.0], (0, 1000)),
        ([-0.02, -80.0], (-9, 1)),
        ([-80.0, 3.0], (-99, 1)),
        ([1e-9, 2.0], (0, 1)),
        ([-1e-7, -3e-7], (-9, 1)),
    ],
)
@pytest.mark.parametrize("higher", [True, False])
def test_without_a_promise_values_are_taken_as_they_come(values, scale, higher):
    rest = iter(values)
    metric = make_metric(lambda o, t: next(rest), higher_is_better=higher)
    found = torch.tensor([metric.value(OUTPUTS, TARGETS) for _ in values])
    assert found.tolist() == pytest.approx(values)
    assert (metric.low, metric.high) == pytest.approx(scale)
    costs = to_cost(metric, found.double())
    assert 0 <= costs[0] <= 1
    assert torch.allclose(from_cost(metric, costs), found.double())
    better = found.argmax() if higher else found.argmin()
    assert costs.argmin() == better


@pytest.mark.parametrize(
    ("values", "promise", "scale"),
    [
        ([3.1, 2.9, 80.0], (0, 1e6), (0, 10)),
        ([0.0, 3.1, 0.0], (0, 1e6), (0, 10)),
        ([-3.1, -0.5, -7e4], (-1e9, 0), (-10, 0)),
        ([-3.1, 5.0], (-1e9, 1e9), (-10, 0)),
        ([123.4, 120.0], (100, 1e12), (100, 200)),
        ([3e5, 1.0], (0, 1e6), (0, 1e6)),
        ([1e-6, 0.5], (0, 1), (0, 1)),  # short enough for any value
        ([0.25, 70.0], (0, 100), (0, 100)),
        ([-1e6, 3.0], (-1e6, 1e6), (-1e6, 1e6)),  # whose cost is known is not moved
    ],
)
@pytest.mark.parametrize("higher", [True, False])
def test_promises_far_apart_do_not_blur_values(values, promise, scale, higher):
    rest = iter([*values, promise[1] * 2 + 1])
    metric = make_metric(
        lambda o, t: next(rest),
        higher_is_better=higher,
        low=promise[0],
        high=promise[1],
    )
    found, costs = [], []
    for _ in values:
        value = torch.tensor(metric.value(OUTPUTS, TARGETS), dtype=torch.float64)
        found.append(value.item())
        costs.append(to_cost(metric, value))
    assert found == values
    assert (metric.low, metric.high) == pytest.approx(scale)
    back = from_cost(metric, torch.stack(costs))
    rounding = 1e-15 * (metric.high - metric.low)
    assert back.tolist() == pytest.approx(values, rel=1e-13, abs=rounding)
    best = values.index(max(values) if higher else min(values))
    assert int(torch.stack(costs).argmin()) == best
    text = rf"range \[{promise[0]:g}, {promise[1]:g}\], which".replace("+", r"\+")
    with pytest.raises(RangeError, match=text):
        metric.value(OUTPUTS, TARGETS)


def test_a_masked_value_is_no_number():
    with pytest.raises(MetricError, match="must return a number, got a masked value"):
        returning(np.ma.masked).value(OUTPUTS, TARGETS)


def test_a_call_finds_its_own_scale():
    rest = iter([350.0, 0.5])
    given = make_metric(lambda o, t: next(rest), higher_is_better=False)
    first, second = (bound_metric(given, PLAIN) for _ in range(2))
    third = bound_metric(first, PLAIN)
    assert first.value(OUTPUTS, TARGETS) == 350
    assert second.value(OUTPUTS, TARGETS) == 0.5
    assert (first.high, second.high, third.high, given.high) == (1000, 1, 1, 1)


def test_an_exception_is_named_and_kept():
    def failing(outputs, targets):
        raise KeyError("threshold")

    metric = make_metric(failing, higher_is_better=True)
    with pytest.raises(MetricError, match="'failing' raised KeyError: 'thr") as caught:
        check_metric(metric, OUTPUTS, TARGETS)
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_check_returns_the_initial_value_or_finds_a_wrong_direction():
    metric = make_metric(accuracy, higher_is_better=True)
    assert check_metric(metric, OUTPUTS, TARGETS) == pytest.approx(0.6)
    metric = make_metric(accuracy, higher_is_better=False)
    text = (
        "metric 'accuracy' is declared higher_is_better=False, but perfect "
        "predictions score 1 and inverted ones 0; check the direction, and that the "
        "metric reads the outputs as logits"
    )
    with pytest.raises(MetricError) as caught:
        check_metric(metric, OUTPUTS, TARGETS)
    assert str(caught.value) == text


def test_perfect_predictions_worse_than_the_network():
    def timid(outputs, targets):
        return float(outputs.abs().max() < 5)

    metric = make_metric(timid, higher_is_better=True)
    text = "perfect predictions score 0 and the untouched network 1;"
    with pytest.raises(MetricError, match=text):
        check_metric(metric, OUTPUTS, TARGETS)


def test_predictions_at_which_a_metric_is_undefined_check_nothing():
    def fragile(outputs, targets):
        return 0.2 if outputs.abs().max() < 5 else math.nan

    def logarithm(outputs, targets):
        return accuracy(outputs, targets).log()

    fragile, logarithm = (
        make_metric(each, higher_is_better=True) for each in (fragile, logarithm)
    )
    given = LABELLED, OUTPUTS, TARGETS, 0.2
    text = "the direction was not checked on {} predictions: metric '{}' returned {}."
    assert check_direction(fragile, *given) == [
        text.format(kind, "fragile", "nan") for kind in ("perfect", "inverted")
    ]
    initial = logarithm.value(OUTPUTS, TARGETS)
    said = check_direction(logarithm, LABELLED, OUTPUTS, TARGETS, initial)
    assert said == [text.format("inverted", "logarithm", "-inf")]


def test_class_logits_and_direction():
    def first_class(outputs, targets):
        return float((outputs.argmax(1) != targets).double().mean())

    outputs = torch.eye(3).repeat(2, 1)
    targets = torch.tensor([0, 1, 2, 2, 1, 0])
    good = make_metric(first_class, higher_is_better=False)
    assert check_metric(good, outputs, targets) == pytest.approx(1 / 3)
    bad = make_metric(first_class, higher_is_better=True)
    with pytest.raises(MetricError, match="perfect predictions score 0 and inverted"):
        check_metric(bad, outputs, targets)


@pytest.mark.parametrize("targets", [torch.linspace(0, 1, 5), torch.arange(5)])
def test_targets_that_are_no_labels_skip_the_perfect_outputs(targets):
    calls = []

    def gap(outputs, targets):
        calls.append(outputs)
        return 0.25

    metric = make_metric(gap, higher_is_better=False)
    assert check_metric(metric, OUTPUTS, targets) == 0.25
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["f1", "aucpr", "g-mean", "jaccard"])
def test_one_class_where_two_are_needed(name):
    text = f"'{name}' needs targets of two classes or more, all 5 targets are 1"
    with pytest.raises(DataError, match=text):
        check_metric(make_metric(name), OUTPUTS, torch.ones(5, dtype=torch.long))


def test_one_class_is_enough_for_some_and_no_example_for_none():
    ones = torch.ones(5, dtype=torch.long)
    assert check_metric(make_metric("mcr"), OUTPUTS, ones) == pytest.approx(0.4)
    with pytest.raises(DataError, match="'f1' needs at least one target, got none"):
        check_metric(make_metric("f1"), OUTPUTS[:0], TARGETS[:0])
    with pytest.raises(ShapeError, match=r"needs outputs \[N, C\], got \[5\]"):
        check_metric(make_metric("mcr"), OUTPUTS[:, 0], TARGETS)
