"""Thresholds one against the rest: what scikit-learn chooses class by class."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score, f1_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from baselines.post_hoc.one_vs_rest import ClassThresholds, tune_one_vs_rest
from baselines.validation import Validation
from metricopt.errors import (
    BudgetExceededError,
    ConfigError,
    DataError,
    MetricError,
    ShapeError,
)
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split
from tests.baselines.post_hoc.fitted import rare_digits, tumours


class Known(ClassifierMixin, BaseEstimator):
    """A fitted classifier that is given the probability of the positive class."""

    classes_ = np.array([0, 1])

    def fit(self, x, y):
        return self

    def predict_proba(self, x):
        return np.hstack([1 - x, x])


def tune(outputs, targets, metric, *, limit=None, **more):
    made = make_metric(metric)
    validation = Validation(made, Split(targets[:, None], targets), limit=limit)
    try:
        found = tune_one_vs_rest(outputs, validation, **more)
    except Exception as error:
        error.queries = validation.queries
        raise
    assert validation.meter.made == {"observe": found.queries}
    return found


MACRO_F = partial(f1_score, average="macro", zero_division=0)


@pytest.mark.parametrize(
    ("metric", "score"),
    [("f-macro", MACRO_F), (balanced_accuracy_score, balanced_accuracy_score)],
)
@pytest.mark.parametrize("size", [20, 100])
def test_every_threshold_is_the_one_that_scikit_learn_chooses(metric, score, size):
    outputs, targets = rare_digits()
    shares, y = softmax(outputs.numpy(), 1), targets.numpy()
    found = tune(outputs, targets, metric, thresholds=size)
    assert found.queries == 4 * size
    for place, threshold in enumerate(found.thresholds.tolist()):
        theirs = TunedThresholdClassifierCV(
            Known(),
            scoring=make_scorer(score),
            thresholds=size,
            cv="prefit",
            refit=False,
        ).fit(shares[:, [place]], y == place)
        assert threshold == pytest.approx(theirs.best_threshold_, rel=1e-9)
    decided = found.shift(outputs).argmax(1).numpy()
    assert np.array_equal(decided, (shares / found.thresholds.numpy()).argmax(1))
    assert score(y, decided) > score(y, shares.argmax(1)) + 0.02


def test_a_threshold_of_zero_is_the_least_number_above_it():
    found = ClassThresholds(torch.tensor([0.5, 0.0, 0.5]).double(), 0)
    shifted = found.shift(torch.tensor([[5.0, 0.0, 4.0]]))
    assert bool(shifted.isfinite().all())
    assert shifted.argmax(1).tolist() == [1]


def test_no_query_is_made_that_others_could_not_follow():
    with pytest.raises(BudgetExceededError, match="400 more metric queries") as caught:
        tune(*rare_digits(), "f-macro", limit=399)
    assert caught.value.queries == 0


def test_a_metric_without_a_value_for_two_classes_is_named_with_the_class():
    outputs, targets = rare_digits()
    with pytest.raises(ShapeError, match="here class 0 against the rest: metric 'top"):
        tune(outputs, targets, "top-1")

    def of_four_classes(outputs, targets):
        raise ValueError("I need four classes")

    failing = make_metric(of_four_classes, higher_is_better=True)
    with pytest.raises(MetricError, match=r"class 0 against the rest: .* four classes"):
        tune(outputs, targets, failing)


def test_bad_arguments_are_named_before_any_query():
    outputs, targets = rare_digits()
    same = outputs.clone()
    same[:] = outputs[0]
    cases = [
        (outputs[:, :2], targets, {}, ShapeError, r"with C >= 3, got \[300, 2\]"),
        (*tumours(), {}, ShapeError, "two classes have one threshold"),
        (outputs[:, :3], targets, {}, DataError, r"0 to 2, got \[0, 1, 2, 3\]"),
        (outputs, targets % 3, {}, DataError, r"0 to 3, got \[0, 1, 2\]"),
        (same, targets, {}, DataError, "class 0 against .* scores that differ"),
        (outputs, targets, {"thresholds": 1}, ConfigError, "needs thresholds >= 2"),
    ]
    for given, of, more, error, text in cases:
        with pytest.raises(error, match=text) as caught:
            tune(given, of, "f-macro", **more)
        assert caught.value.queries == 0
