"""The threshold shift against a search over every possible cut."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from baselines.threshold_shift import candidate_thresholds, tune_threshold
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.metrics import Metric, make_metric


class Counting(Metric):
    """F1 by scikit-learn, counting its calls."""

    name, higher_is_better = "counting", True

    def __init__(self):
        self.calls = 0

    def _value(self, outputs, targets):
        self.calls += 1
        return f1_score(targets, outputs[:, 0] >= 0, zero_division=0)


def every_cut(scores, targets):
    """F1 of every set of predictions a threshold can make, from none to all."""
    cuts = [*sorted(set(scores)), float("inf")]
    return [
        f1_score(targets, [s >= cut for s in scores], zero_division=0) for cut in cuts
    ]


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
    found = tune_threshold(outputs, targets, metric=metric)
    values = every_cut(scores, labels)
    assert found.value == pytest.approx(max(values))
    assert found.queries == metric.calls == len(set(scores)) + 1
    lowest = values.index(max(values))
    positives = int((outputs - found.threshold >= 0).sum())
    assert positives == sum(s >= [*sorted(set(scores)), 9][lowest] for s in scores)


def test_lower_is_better_is_minimised():
    outputs = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    targets = torch.tensor([0, 0, 0, 1])
    found = tune_threshold(outputs, targets, metric=make_metric("mcr"))
    assert (found.threshold, found.value, found.queries) == (1.5, 0.0, 5)


def test_candidates_are_midpoints_with_both_ends():
    scores = torch.tensor([3.0, 1.0, 1.0, 2.0])
    candidates = candidate_thresholds(scores)
    assert candidates[1:-1].tolist() == [1.5, 2.5]
    assert candidates[0] < 1
    assert candidates[-1] > 3


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_neighbouring_floats_are_still_cut(scale):
    low = torch.tensor(scale)
    scores = torch.stack([low, torch.nextafter(low, low * 2)])
    cuts = [(scores - cut >= 0).tolist() for cut in candidate_thresholds(scores)]
    assert cuts == [[True, True], [False, True], [False, False]]


def test_candidates_are_thinned_with_both_ends_kept():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(2, (500,), generator=generator)
    outputs = (torch.randn(500, generator=generator) + targets)[:, None]
    metric = make_metric("f1")
    full = tune_threshold(outputs, targets, metric=metric)
    thinned = tune_threshold(outputs, targets, metric=metric, max_candidates=50)
    assert (full.queries, thinned.queries) == (501, 50)
    assert full.value >= thinned.value > full.value - 0.02
    realised = metric.value(outputs - thinned.threshold, targets)
    assert realised == pytest.approx(thinned.value)
    ends = tune_threshold(outputs, targets, metric=metric, max_candidates=2)
    everything_positive = targets.sum().item() * 2 / (500 + targets.sum().item())
    assert ends.value == pytest.approx(everything_positive)


def test_bad_arguments_are_named():
    metric, targets = make_metric("f1"), torch.tensor([0, 1])
    with pytest.raises(ShapeError, match=r"needs one logit.*got \[2, 2\]"):
        tune_threshold(torch.zeros(2, 2), targets, metric=metric)
    with pytest.raises(DataError, match=r"both classes 0 and 1, got \[0\]"):
        tune_threshold(torch.zeros(2, 1), torch.zeros(2).long(), metric=metric)
    with pytest.raises(ConfigError, match="at least 2, got 1"):
        tune_threshold(torch.zeros(2, 1), targets, metric=metric, max_candidates=1)
