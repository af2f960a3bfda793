"""Tuned classifiers start from what `predict` of the classifier itself decides."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import (
    f1_score,
    get_scorer,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier, RepeatedKFold
from sklearn.neighbors import KNeighborsClassifier

from metricopt import ConfigError, at_least
from metricopt.sklearn import MetricTunedClassifier


def noisy(seed=0):
    """Two classes, one of them rare: examples to train on, and others to observe."""
    inputs, labels = make_classification(
        1_500, weights=[0.85], flip_y=0.1, class_sep=0.7, random_state=seed
    )
    return (inputs[:500], labels[:500]), (inputs[500:], labels[500:])


def prefit(classifier, metric, **settings):
    """The tuned classifier, and the data that it was tuned on."""
    train, observed = noisy()
    classifier.fit(*train)
    settings = {"queries": 8} | settings
    tuned = MetricTunedClassifier(classifier, metric, cv="prefit", **settings)
    return tuned.fit(*observed), observed


def test_of_two_classes_that_are_as_likely_the_first_is_taken():
    tuned, (inputs, labels) = prefit(KNeighborsClassifier(2), "accuracy")
    own = tuned.estimator_
    assert (own.predict_proba(inputs)[:, 0] == 0.5).sum() > 20
    assert tuned.metric_before_ == pytest.approx(own.score(inputs, labels))
    assert tuned.score(inputs, labels) >= own.score(inputs, labels)
    assert "decides otherwise" not in tuned.report_


def fixed(threshold):
    return FixedThresholdClassifier(
        LogisticRegression(), threshold=threshold, response_method="predict_proba"
    )


def test_a_classifier_stays_unless_the_gain_over_its_own_decisions_shows():
    tuned, (inputs, labels) = prefit(fixed(0.3), "f1")
    own = tuned.estimator_.predict(inputs)
    assert tuned.metric_before_ == pytest.approx(f1_score(labels, own))
    assert tuned.metric_after_ == tuned.metric_before_
    assert tuned.expected_ is None
    assert tuned.n_queries_ <= tuned.queries
    assert tuned.scales_.shape == tuned.offsets_.shape
    with pytest.raises(ConfigError, match=r"at least 5, as one of them .* got 4"):
        prefit(fixed(0.3), "f1", queries=4)
    assert "decides otherwise than by its largest output" in tuned.report_
    np.testing.assert_array_equal(tuned.predict(inputs), own)


def test_a_bound_is_kept_also_where_own_decisions_are_others():
    bounds = [at_least("recall", 0.6)]
    tuned, (inputs, labels) = prefit(
        fixed(0.9), "accuracy", constraints=bounds, queries=20
    )
    assert recall_score(labels, tuned.estimator_.predict(inputs)) < 0.3
    assert recall_score(labels, tuned.predict(inputs)) >= 0.6
    assert "decides otherwise" in tuned.report_


def test_decisions_far_from_the_largest_output_are_replaced():
    tuned, (inputs, labels) = prefit(fixed(0.001), "f1", queries=15)
    own = f1_score(labels, tuned.estimator_.predict(inputs))
    assert tuned.metric_before_ == pytest.approx(own)
    assert tuned.metric_after_ == pytest.approx(f1_score(labels, tuned.predict(inputs)))
    assert tuned.metric_after_ > own + 0.05
    assert tuned.expected_.low > 0
    assert "on other data it is beaten" in tuned.report_


class Reversed(ClassifierMixin, BaseEstimator):
    """A classifier whose classes are not sorted."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):  # noqa: N803
        self.inner_ = self.inner.fit(X, y)
        self.classes_ = self.inner_.classes_[::-1].copy()
        for name in ("predict_proba", "decision_function"):
            if hasattr(self.inner_, name):
                setattr(self, name, self.turned(getattr(self.inner_, name)))
        return self

    @staticmethod
    def turned(method):
        def reverse(X):  # noqa: N803
            found = method(X)
            return -found if found.ndim == 1 else found[:, ::-1]

        return reverse

    def predict(self, X):  # noqa: N803
        return self.inner_.predict(X)


@pytest.mark.parametrize("inner", [LogisticRegression(), RidgeClassifier()])
@pytest.mark.parametrize("cv", ["prefit", 0.5])
def test_classes_that_are_not_sorted(inner, cv):
    (inputs, labels), observed = noisy()
    names = np.array(["no", "yes"])
    classifier = Reversed(inner).fit(inputs, names[labels])
    tuned = MetricTunedClassifier(classifier, "accuracy", cv=cv, queries=8)
    tuned.fit(observed[0], names[observed[1]])
    assert tuned.classes_.tolist() == ["no", "yes"]
    assert tuned.metric_before_ > 0.8
    assert "decides otherwise" not in tuned.report_
    assert (tuned.predict(observed[0]) == names[observed[1]]).mean() > 0.8
    for method in ("predict_proba", "decision_function"):
        if hasattr(tuned, method):
            found = getattr(tuned, method)(observed[0])
            second = found if found.ndim == 1 else found[:, 1]
            assert roc_auc_score(observed[1], second) > 0.6


def test_an_example_that_several_parts_hold_out_counts_once():
    (inputs, labels), _ = noisy()
    cv = RepeatedKFold(n_splits=2, n_repeats=3, random_state=0)
    tuned = MetricTunedClassifier(LogisticRegression(), "f1", cv=cv, queries=8)
    tuned.fit(inputs, labels)
    assert f"on {len(labels)} examples" in tuned.report_


@pytest.mark.parametrize(
    "metric", ["roc_auc", get_scorer("neg_log_loss"), "aucpr", "top-5"]
)
def test_a_metric_of_what_stays_as_it_is_is_refused(metric):
    train, _ = noisy()
    for settings in (
        {"metric": metric},
        {"metric": "f1", "constraints": [at_least(metric, 0.5)]},
    ):
        tuned = MetricTunedClassifier(LogisticRegression(), **settings)
        with pytest.raises(ConfigError, match="reads probabilities or decision values"):
            tuned.fit(*train)


def predictions_first(y_pred, y_true):
    return recall_score(y_true, y_pred)


def test_names_of_parameters_say_that_predictions_come_first():
    options = {"higher_is_better": True}
    tuned, (inputs, labels) = prefit(
        LogisticRegression(), predictions_first, options=options
    )
    own = tuned.estimator_.predict(inputs)
    assert tuned.metric_before_ == pytest.approx(recall_score(labels, own))
    assert tuned.metric_before_ != pytest.approx(precision_score(labels, own))
