"""All examples confirm what a search on a sample of them has found."""

import sys
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from metricopt import ConfigError, MetricError, tune
from tests.metricopt.test_tune import macro_f1, rare_digits, rare_tumours
from tests.metricopt.unfair_scores import ALIKE, GIVEN, LABELS, SCORES, gap

LONGER = {"queries": 24, "progress": False}
SHORTER = LONGER | {"queries": 18}


@pytest.fixture(autouse=True)
def at_most_300(monkeypatch):
    monkeypatch.setattr(sys.modules["metricopt.tune"], "MOST", 300)


def test_a_search_on_some_examples_is_confirmed_on_all():
    (logits, labels), _ = rare_digits()
    sizes, place = [], np.arange(len(labels))

    def scored(outputs, targets, place):
        assert np.array_equal(targets, labels[place])
        sizes.append(len(targets))
        return macro_f1(targets, outputs.argmax(1))

    found = tune(
        logits,
        labels,
        scored,
        higher_is_better=True,
        columns={"place": place},
        **LONGER,
    )
    assert (found.examples, found.searched) == (550, 300)
    assert sizes[-2:] == [550, 550]
    assert set(sizes[:-2]) <= {300}
    assert len(sizes) == found.spent.queries <= 24
    assert found.metric_before == macro_f1(labels, logits.argmax(1))
    assert found.metric_after == macro_f1(labels, found.predict(logits))
    assert found.metric_after > found.metric_before
    assert "The search saw 300 of the examples." in found.summary()


def test_decisions_that_are_all_alike_are_noticed():
    found = tune(SCORES, LABELS, gap, **GIVEN | LONGER)
    assert found.examples == 600 and set(found.predict(SCORES)) == {1}
    (warning,) = found.warnings
    assert warning.startswith(ALIKE)


def test_what_all_examples_do_not_confirm_is_refused():
    (logits, labels), _ = rare_digits()

    def worse_on_all(outputs, targets):
        value = macro_f1(targets, outputs.argmax(1))
        return value if len(targets) <= 300 else 1 - value

    found = tune(logits, labels, worse_on_all, higher_is_better=True, **LONGER)
    assert not found.offsets.any()
    assert found.metric_before == found.metric_after
    assert "On all 550 examples nothing is gained" in found.summary()
    assert found.expected is None


def test_what_was_found_survives_a_failure_on_all_examples():
    (logits, labels), _ = rare_digits()

    def fails_on_all(outputs, targets):
        if len(targets) > 300:
            raise ValueError("too many")
        return macro_f1(targets, outputs.argmax(1))

    with pytest.raises(MetricError, match="too many") as caught:
        tune(logits, labels, fails_on_all, higher_is_better=True, **LONGER)
    assert caught.value.partial.offsets.any()
    with pytest.raises(ConfigError, match=r"at least 6 for more than 300 examples"):
        tune(logits, labels, "accuracy", queries=5)
    with pytest.raises(ConfigError, match="at least 8 to search with, got 7"):
        tune(logits, labels, fails_on_all, higher_is_better=True, queries=7)


class Counted:
    """A score of tumours that does something first, where it is asked about all."""

    def __init__(self, first=lambda asked: None):
        self.asked, self.asked_all, self.first = 0, 0, first

    def __call__(self, outputs, targets):
        self.asked += 1
        if len(targets) > 300:
            self.asked_all += 1
            self.first(self.asked_all)
        return f1_score(targets, outputs.flatten() > 0)


def tumours(metric, **settings):
    odds, labels = rare_tumours()
    return tune(odds, labels, metric, higher_is_better=True, **(SHORTER | settings))


@cache
def confirmed():
    return tumours(Counted())


def test_confirming_queries_are_kept_in_the_same_file(tmp_path):
    metric = Counted()
    first = tumours(metric, checkpoint=tmp_path / "queries.txt")
    asked = metric.asked
    again = tumours(metric, checkpoint=tmp_path / "queries.txt")
    assert metric.asked == asked
    assert again.spent.replayed == again.spent.queries == first.spent.queries
    assert torch.equal(first.offsets, again.offsets)
    assert first.metric_after == again.metric_after > again.metric_before


@pytest.mark.parametrize("failing", [1, 2])
def test_a_confirming_query_is_asked_again_if_it_fails(failing):
    def fails_once(asked):
        if asked == failing:
            raise TimeoutError("away for a second")

    found = tumours(Counted(fails_once), retries=1)
    assert found.metric_after == confirmed().metric_after > found.metric_before


@pytest.mark.parametrize("last", [1, 2])
def test_an_interrupted_confirmation_returns_what_was_found(last):
    def interrupts(asked):
        if asked == last:
            raise KeyboardInterrupt

    metric = Counted(interrupts)
    found, whole = tumours(metric), confirmed()
    assert torch.equal(found.offsets, whole.offsets)
    assert found.spent.queries == metric.asked - 1 == whole.spent.queries - 3 + last
    assert "on 300 examples, and not confirmed on all 319." in found.warnings[-1]
    assert found.summary().startswith("Counted on 300 examples: ")


def test_an_interrupted_search_is_not_confirmed():
    metric = Counted()

    def interrupts(query, value, best):
        if query == 8:
            raise KeyboardInterrupt

    found = tumours(metric, callback=interrupts)
    assert metric.asked == found.spent.queries == 8
    assert found.warnings[0].startswith("interrupted after 8 of 18 queries; phi is the")
    assert found.summary().startswith("Counted on 300 examples: ")


def test_confirming_queries_draw_from_a_random_state_that_is_kept():
    np.random.seed(1)
    before = np.random.get_state()[2]
    tumours(Counted(lambda asked: np.random.random()))
    assert np.random.get_state()[2] == before


def test_a_callback_sees_the_confirming_queries():
    seen = []
    found = tumours(Counted(), callback=lambda *each: seen.append(each))
    queries, values, _ = zip(*seen, strict=True)
    assert queries[-1] == found.spent.queries
    assert values[-2:] == (found.metric_before, found.metric_after)


def test_untouched_outputs_are_asked_about_once():
    values = iter([0.9, 0.1])

    def noisy_on_all(outputs, targets):
        return next(values) if len(targets) > 300 else 0.5

    found = tumours(noisy_on_all)
    assert not found.offsets.any()
    assert found.metric_before == found.metric_after == 0.9
    assert next(values) == 0.1
