"""Metered queries, with values and costs, and the check of binary problems."""

import pytest
import torch

from baselines.validation import Validation, check_binary, labels
from metricopt.errors import BudgetExceededError, DataError, MetricError, ShapeError
from metricopt.metrics.base import to_cost
from metricopt.reading.callables import CallableMetric, make_metric
from metricopt.tasks.examples import LazySplit
from metricopt.tasks.sampling import Split

TARGETS = torch.tensor([0, 1, 1, 0, 1])
OBSERVE = Split(torch.zeros(5, 2), TARGETS)


@pytest.mark.parametrize("name", ["f1", "mcr"])
def test_costs_and_values_are_those_of_the_metric_and_counted_by_row(name):
    metric, outputs = make_metric(name), torch.randn(3, 5, 1)
    validation = Validation(metric, OBSERVE)
    expected = metric.values(outputs, TARGETS)
    assert torch.equal(validation.values(outputs), expected)
    assert torch.equal(validation.costs(outputs[:2]), to_cost(metric, expected[:2]))
    assert validation.queries == 5
    assert torch.equal(validation.as_costs(expected), to_cost(metric, expected))
    assert validation.queries == 5


def test_a_mini_batch_comes_with_its_own_labels():
    validation, outputs = Validation(make_metric("mcr"), OBSERVE), torch.ones(1, 3, 1)
    assert validation.costs(outputs, torch.tensor([1, 1, 0])) == pytest.approx(1 / 3)
    with pytest.raises(ShapeError):
        validation.costs(outputs)
    assert validation.queries == 1


def test_chosen_examples_of_the_observe_split_are_judged_by_their_own_labels():
    validation = Validation(make_metric("mcr"), OBSERVE, limit=2)
    places, outputs = torch.tensor([1, 3, 4]), torch.ones(2, 3, 1)
    assert validation.values_on(places, outputs).tolist() == pytest.approx([1 / 3] * 2)
    assert validation.meter.made == {"observe": 2}
    with pytest.raises(BudgetExceededError):
        validation.values_on(places, outputs)


def test_queries_beyond_the_limit_are_not_made():
    calls = []
    metric = CallableMetric(
        lambda *_: calls.append(1) or 0.5, "counted", higher_is_better=True
    )
    validation = Validation(metric, OBSERVE, limit=3)
    validation.costs(torch.zeros(2, 5, 1))
    for query in (validation.costs, validation.values):
        with pytest.raises(BudgetExceededError, match=r"2 more .* after 2 exceed .* 3"):
            query(torch.zeros(2, 5, 1))
    assert (len(calls), validation.queries) == (2, 2)
    with pytest.raises(BudgetExceededError, match=r"2 more .* after 2 exceed .* 3"):
        validation.charge(2)
    validation.charge(1)
    assert validation.queries == 3


def test_a_metric_that_fails_is_no_query():
    bad = CallableMetric(lambda *_: float("nan"), "bad", higher_is_better=True)
    validation = Validation(bad, OBSERVE)
    with pytest.raises(MetricError, match="'bad' returned nan"):
        validation.costs(torch.zeros(1, 5, 1))
    assert validation.queries == 0


def test_labels_must_be_one_tensor():
    assert labels(OBSERVE) is TARGETS
    with pytest.raises(DataError, match=r"labels in one tensor \[N\], got list"):
        labels(LazySplit([(torch.zeros(1), "cat"), (torch.zeros(1), "dog")]))


def test_binary_problems_have_one_logit_and_two_classes():
    check_binary(torch.zeros(1, 1), TARGETS, user="this")
    for outputs in (torch.zeros(5), torch.zeros(5, 2)):
        shape = str(list(outputs.shape)).replace("[", r"\[")
        with pytest.raises(ShapeError, match=rf"this needs one logit.* got {shape}"):
            check_binary(outputs, TARGETS, user="this")
    for classes in ([1], [0, 1, 2]):
        with pytest.raises(DataError, match="this needs targets of both classes 0 and"):
            check_binary(torch.zeros(1, 1), torch.tensor(classes), user="this")


def test_other_labels_of_the_observe_split_count_on_the_same_meter():
    beside = Split(OBSERVE.inputs, TARGETS, {"group": TARGETS})
    validation = Validation(make_metric("mcr"), beside, limit=3)
    other, outputs = validation.relabelled(1 - TARGETS), torch.ones(2, 5, 1)
    assert other.values(outputs).tolist() == pytest.approx([3 / 5] * 2)
    assert validation.values(outputs[:1]).tolist() == pytest.approx([2 / 5])
    assert validation.meter.made == {"observe": 3}
    assert torch.equal(other.observe.columns["group"], TARGETS)
    with pytest.raises(BudgetExceededError):
        other.values(outputs[:1])
