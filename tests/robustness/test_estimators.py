"""Estimators refuse in words of scikit-learn: X, y and what they predict."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression

from metricopt import ConfigError, at_least
from metricopt.sklearn import MetricTunedClassifier, MetricTunedRegressor


class Returns(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are spoilt."""

    def __init__(self, spoil):
        self.spoil = spoil

    def fit(self, inputs, labels):
        self.classes_ = np.unique(labels)
        return self

    def predict_proba(self, inputs):
        shares = 1 / (1 + np.exp(-inputs[:, 0]))
        return self.spoil(np.stack([1 - shares, shares], 1))


def with_nan(shares):
    shares[3] = np.nan
    return shares


SPOILT = {
    "nan": (with_nan, "outputs of the Returns must be finite .* first for example 3 o"),
    "short": (
        lambda shares: shares[:-3],
        "one row for each of 20 examples of X, got 17",
    ),
    "one column": (
        lambda shares: shares[:, 1],
        r"one column for each of 2 classes.*20\]",
    ),
    "more": (
        lambda shares: shares.repeat(2, 1),
        r"each of 2 classes, got shape .*, 4\]",
    ),
    "nothing": (
        lambda shares: None,
        r"one column for each of 2 classes, got shape \[\]",
    ),
}
X, Y = np.linspace(-2, 2, 100).reshape(-1, 1), np.arange(100) % 2


@pytest.mark.parametrize("name", SPOILT)
def test_what_an_estimator_returns_is_refused_as_its_outputs(name):
    spoil, text = SPOILT[name]
    with pytest.raises(ValueError, match=text):
        MetricTunedClassifier(Returns(spoil), "f1_macro").fit(X, Y)


def test_predicted_values_have_to_be_finite():
    class Nowhere(RegressorMixin, BaseEstimator):
        def fit(self, inputs, values):
            return self

        def predict(self, inputs):
            return np.log(inputs[:, 0])

    text = (
        "outputs of the Nowhere must be finite numbers, got NaN or infinity for 20 of"
    )
    with pytest.raises(ValueError, match=text), np.errstate(invalid="ignore"):
        MetricTunedRegressor(Nowhere()).fit(X, X[:, 0])


class Untrained(LogisticRegression):
    """A classifier that is never trained."""

    def fit(self, *given, **more):
        raise AssertionError("trained")


def paid(y_true, y_pred, amount):
    return float((amount * (y_true == y_pred)).mean())


EARLY = {
    "unknown": ({"metric": "f1_marco"}, "unknown metric 'f1_marco'"),
    "embeddings": (
        {"metric": "mean-recall"},
        "'mean-recall' reads embeddings, which an estimator does not predict: for the "
        "mean of the recalls of all classes, pass 'balanced_accuracy'",
    ),
    "detections": ({"metric": "ap50"}, "detections, .*: pass a metric of labels or v"),
    "column": (
        {"metric": paid, "options": {"higher_is_better": True}},
        r"'paid' also needs 'amount': pass it to fit\(X, y, amount=values\), or a func",
    ),
    "column of a bound": (
        {"constraints": [at_least(paid, 0.5)]},
        r"'paid' also needs 'amount': pass it to fit\(X, y, amount=values\)",
    ),
    "settled": (
        {"options": {"queries": 9, "outputs": "logits"}},
        "options cannot hold outputs, queries, which a MetricTunedClassifier settles",
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_settings_are_refused_before_the_estimator_is_trained(name):
    settings, text = EARLY[name]
    with pytest.raises(ConfigError, match=text):
        MetricTunedClassifier(Untrained(), **settings).fit(X, Y)


@pytest.mark.parametrize(
    ("amount", "got"), [(Y[:20], 20), (np.ones(300), 300), (3, "one")]
)
def test_values_of_the_examples_have_their_length(amount, got):
    options = {"higher_is_better": True}
    text = f"amount needs one value for each of the 100 examples of X, got {got}"
    tuned = MetricTunedClassifier(Untrained(), paid, options=options)
    with pytest.raises(ValueError, match=text):
        tuned.fit(X, Y, amount=amount)
    tuned = MetricTunedClassifier(LogisticRegression().fit(X, Y), cv="prefit")
    with pytest.raises(ValueError, match="sample_weight needs one value for each of"):
        tuned.fit(X, Y, sample_weight=np.ones(20))


def test_a_bound_on_a_metric_of_metricopt_goes_with_a_scorer():
    bounds = [at_least("mcr", 0.5)]
    tuned = MetricTunedClassifier(
        LogisticRegression(), "f1", constraints=bounds, queries=5, cv=0.5
    )
    tuned.fit(X, X[:, 0] > 0.3)
    assert "mcr at least 0.5" in tuned.report_
