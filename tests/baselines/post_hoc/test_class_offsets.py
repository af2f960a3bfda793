"""The class offsets against a plain coordinate ascent, one query at a time."""

import pytest
import torch

from baselines.post_hoc.class_offsets import OffsetSearch, tune_offsets
from metricopt.errors import BudgetExceededError, ShapeError
from metricopt.metrics.base import Metric
from metricopt.reading.callables import CallableMetric, make_metric
from tests.baselines.post_hoc.calibrated import searched

DEFAULT = OffsetSearch()


def tune(outputs, targets, *, metric, search=DEFAULT, limit=None):
    return searched(tune_offsets, outputs, targets, metric, limit=limit, search=search)


def problem(examples=120, classes=4, seed=0):
    """Return outputs that favour low classes, and labels that they do not know of."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(classes, (examples,), generator=generator)
    outputs = torch.randn(examples, classes, generator=generator)
    outputs += 1.5 * torch.nn.functional.one_hot(targets, classes)
    return outputs - 0.6 * torch.arange(classes), targets


def plain_ascent(outputs, targets, metric, search):
    """Return the offsets, their value and the queries, one candidate at a time."""
    log_probs, sign = outputs.log_softmax(1), 1 if metric.higher_is_better else -1
    middle = (search.candidates - 1) / 2
    grid = [search.reach * (i - middle) / middle for i in range(search.candidates)]
    offsets, queries = [0.0] * outputs.shape[1], 1
    best = metric.value(log_probs, targets)
    for _ in range(search.passes):
        start = list(offsets)
        for label, present in enumerate(start):
            for candidate in grid:
                if candidate == present:
                    continue
                trial = [*offsets[:label], candidate, *offsets[label + 1 :]]
                value = metric.value(log_probs + torch.tensor(trial), targets)
                queries += 1
                if sign * value > sign * best:
                    best, offsets = value, trial
        if offsets == start:
            break
    return offsets, best, queries


class Counting(Metric):
    """The misclassification rate, counting its calls."""

    name, higher_is_better = "counting", False

    def __init__(self):
        self.calls = 0

    def _value(self, outputs, targets):
        self.calls += 1
        return make_metric("mcr").value(outputs, targets)


SEARCHES = [
    DEFAULT,
    OffsetSearch(candidates=8),  # zero is not among them
    OffsetSearch(passes=1, candidates=5, reach=3.0),
]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", ["mcr", "f-macro", "worst-class-error", "aucpr"])
def test_equals_a_plain_ascent(name, search):
    outputs, targets = problem()
    metric = make_metric(name)
    found = tune(outputs, targets, metric=metric, search=search)
    offsets, value, queries = plain_ascent(outputs, targets, metric, search)
    torch.testing.assert_close(found.best.offsets, torch.tensor(offsets))
    assert found.best.value == pytest.approx(value)
    assert found.queries == queries
    assert found.best.value != metric.value(outputs, targets)
    assert metric.value(found.best.shift(outputs), targets) == found.best.value


def test_every_evaluation_is_a_query():
    outputs, targets = problem()
    metric = Counting()
    found = tune(outputs, targets, metric=metric)
    assert found.queries == metric.calls
    assert found.queries in {1 + 40 * 4 * passes for passes in (1, 2, 3)}


def test_every_improvement_is_noted_with_its_queries():
    outputs, targets = problem()
    metric = make_metric("f-macro")
    found = tune(outputs, targets, metric=metric)
    first, last = found.trace[0], found.trace[-1]
    assert (first.queries, first.offsets.tolist()) == (1, [0.0] * 4)
    assert first.value == metric.value(outputs, targets)
    assert (last.value, last.offsets is found.best.offsets) == (found.best.value, True)
    for before, after in zip(found.trace[:-1], found.trace[1:], strict=True):
        assert before.queries < after.queries <= found.queries
        assert before.value < after.value
        shifted = outputs.log_softmax(1) + after.offsets
        assert metric.value(shifted, targets) == after.value


@pytest.mark.parametrize("limit", [1, 2, 30, 41, 42, 137, 10_000])
def test_a_limit_returns_what_the_trace_says_of_as_many_queries(limit):
    outputs, targets = problem()
    metric = Counting()
    whole = tune(outputs, targets, metric=make_metric("mcr"))
    search = OffsetSearch(max_queries=limit)
    found = tune(outputs, targets, metric=metric, search=search)
    known = [point for point in whole.trace if point.queries <= limit][-1]
    assert found.queries == metric.calls == min(limit, whole.queries)
    assert found.best.value == known.value
    assert torch.equal(found.best.offsets, known.offsets)


def test_the_limit_of_the_validation_is_kept_too():
    metric = Counting()
    with pytest.raises(BudgetExceededError, match=r"40 more .* after 41 exceed .* 80"):
        tune(*problem(), metric=metric, limit=80)
    assert metric.calls == 41


def test_calls_of_a_few_logits_find_the_same(monkeypatch):
    outputs, targets = problem()
    metric = make_metric("mcr")
    expected = tune(outputs, targets, metric=metric)
    monkeypatch.setattr("baselines.post_hoc.class_scores.LOGITS", 7 * outputs.numel())
    found = tune(outputs, targets, metric=metric)
    assert torch.equal(found.best.offsets, expected.best.offsets)
    assert found.queries == expected.queries


def test_ties_keep_the_offsets_and_end_the_search_after_one_pass():
    constant = CallableMetric(lambda *_: 0.5, "constant", higher_is_better=True)
    found = tune(*problem(), metric=constant)
    assert found.best.offsets.tolist() == [0.0] * 4
    assert (found.best.value, found.queries, len(found.trace)) == (0.5, 1 + 160, 1)


def test_the_lowest_of_equally_good_candidates_is_taken():
    outputs, targets = torch.tensor([[0.3, 0.0], [5.0, 0.0]]), torch.tensor([1, 0])
    search = OffsetSearch(candidates=5, passes=1)
    found = tune(outputs, targets, metric=make_metric("mcr"), search=search)
    # Class 0 is lowered first, where -1 and -0.5 do equally well.
    assert (found.best.offsets.tolist(), found.best.value) == ([-1.0, 0.0], 0.0)
    assert [point.queries for point in found.trace] == [1, 2]


def test_a_wider_reach_undoes_a_greater_prior():
    targets = torch.arange(3).repeat(50)
    hot = torch.nn.functional.one_hot(targets, 3).double()
    outputs = 2 * hot + torch.tensor([0.0, 0.0, -5.1])
    metric = make_metric("worst-class-error")
    near = tune(outputs, targets, metric=metric)
    search = OffsetSearch(reach=4.0)
    far = tune(outputs, targets, metric=metric, search=search)
    assert (near.best.value, far.best.value) == (1.0, 0.0)
    assert 3.1 < far.best.offsets[2] - far.best.offsets[0] < 7.1
    assert far.best.offsets.dtype == torch.float64


def test_bad_arguments_are_named():
    metric, targets = make_metric("mcr"), torch.tensor([0, 1])
    for outputs in (torch.zeros(2, 1), torch.zeros(2), torch.zeros(1, 2, 3)):
        shape = str(list(outputs.shape)).replace("[", r"\[")
        with pytest.raises(ShapeError, match=rf"with C >= 2, got {shape}"):
            tune(outputs, targets, metric=metric)
