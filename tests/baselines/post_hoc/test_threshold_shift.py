"""The threshold shift against a search over every possible cut."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines.post_hoc.threshold_shift import candidate_thresholds, tune_threshold
from baselines.validation import Validation
from metricopt.errors import BudgetExceededError, ConfigError, DataError, ShapeError
from metricopt.metrics.base import Metric
from metricopt.reading.callables import CallableMetric, make_metric
from metricopt.tasks.sampling import Split


def tune(outputs, targets, *, metric, limit=None, **more):
    validation = Validation(metric, Split(outputs, targets), limit=limit)
    found = tune_threshold(outputs, validation, **more)
    assert found.queries == validation.queries
    return found


def f1(labels, predicted):
    """2 TP / (2 TP + FP + FN), and 0 of nothing."""
    hits = sum(bool(a and b) for a, b in zip(labels, predicted, strict=True))
    wrong = sum(bool(a) != bool(b) for a, b in zip(labels, predicted, strict=True))
    return 2 * hits / (2 * hits + wrong) if hits else 0.0


class Counting(Metric):
    """F1, counting its calls."""

    name, higher_is_better = "counting", True

    def __init__(self):
        self.calls = 0

    def _value(self, outputs, targets):
        self.calls += 1
        return f1(targets.tolist(), (outputs[:, 0] > 0).tolist())


def every_cut(scores, targets):
    """F1 of every set of predictions a threshold can make, from none to all."""
    cuts = [*sorted(set(scores)), float("inf")]
    return [f1(targets, [s >= cut for s in scores]) for cut in cuts]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([-1.5, -0.2, 0.1, 0.7, 3.0]), st.integers(0, 1)),
        min_size=2,
        max_size=12,
    ).filter(lambda pairs: len({label for _, label in pairs}) == 2)
)
def test_finds_the_best_cut_and_the_lowest_on_ties(pairs):
    scores, labels = zip(*pairs, strict=True)
    outputs, targets = torch.tensor(scores)[:, None], torch.tensor(labels)
    metric = Counting()
    found = tune(outputs, targets, metric=metric)
    values = every_cut(scores, labels)
    assert found.value == pytest.approx(max(values))
    assert found.queries == metric.calls == len(set(scores)) + 1
    lowest = values.index(max(values))
    positives = int((outputs - found.threshold > 0).sum())
    assert positives == sum(s >= [*sorted(set(scores)), 9][lowest] for s in scores)


def test_lower_is_better_is_minimised():
    outputs = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    targets = torch.tensor([0, 0, 0, 1])
    found = tune(outputs, targets, metric=make_metric("mcr"))
    assert (found.threshold, found.value, found.queries) == (1.5, 0.0, 5)


def test_candidates_are_midpoints_with_both_ends():
    scores = torch.tensor([3.0, 1.0, 1.0, 2.0])
    candidates = candidate_thresholds(scores)
    assert candidates[1:-1].tolist() == [1.5, 2.5]
    assert candidates[0] < 1
    assert candidates[-1] > 3


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_neighbouring_floats_are_still_cut(scale, odd):
    low = torch.tensor(scale)
    if odd:  # the midpoint is rounded up
        low = torch.nextafter(low, low * 2)
    scores = torch.stack([low, torch.nextafter(low, low * 2)])
    cuts = [(scores - cut > 0).tolist() for cut in candidate_thresholds(scores)]
    assert cuts == [[True, True], [False, True], [False, False]]


def test_candidates_are_thinned_with_both_ends_kept():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(2, (500,), generator=generator)
    outputs = (torch.randn(500, generator=generator) + targets)[:, None]
    metric = make_metric("f1")
    full = tune(outputs, targets, metric=metric)
    thinned = tune(outputs, targets, metric=metric, max_candidates=50)
    assert (full.queries, thinned.queries) == (501, 50)
    assert full.value >= thinned.value > full.value - 0.02
    assert torch.equal(thinned.shift(outputs), outputs - thinned.threshold)
    assert metric.value(thinned.shift(outputs), targets) == thinned.value
    ends = tune(outputs, targets, metric=metric, max_candidates=2)
    everything_positive = targets.sum().item() * 2 / (500 + targets.sum().item())
    assert ends.value == pytest.approx(everything_positive)


def test_the_value_is_the_native_one_and_not_a_cost_converted_back():
    targets = torch.tensor([1] * 3 + [0] * 7)
    outputs = torch.linspace(1, -1, 10)[:, None]
    values = iter([0.1, 0.3, *[0.2] * 9])
    metric = CallableMetric(lambda *_: next(values), "listed", higher_is_better=True)
    assert tune(outputs, targets, metric=metric).value == 0.3
    assert 1 - (1 - 0.3) != 0.3


def test_no_more_queries_are_made_than_allowed():
    outputs, targets = torch.arange(100.0)[:, None], torch.tensor([0, 1] * 50)
    metric = Counting()
    with pytest.raises(BudgetExceededError, match=r"37 more .* after 64 exceed .* 100"):
        tune(outputs, targets, metric=metric, limit=100)
    assert metric.calls == 64
    assert tune(outputs, targets, metric=metric, limit=101).queries == 101


def test_bad_arguments_are_named():
    metric, targets = make_metric("f1"), torch.tensor([0, 1])
    with pytest.raises(ShapeError, match=r"needs one logit.*got \[2, 2\]"):
        tune(torch.zeros(2, 2), targets, metric=metric)
    with pytest.raises(DataError, match=r"both classes 0 and 1, got \[0\]"):
        tune(torch.zeros(2, 1), torch.zeros(2).long(), metric=metric)
    with pytest.raises(ConfigError, match="max_candidates >= 2, got max_candidates=1"):
        tune(torch.zeros(2, 1), targets, metric=metric, max_candidates=1)
