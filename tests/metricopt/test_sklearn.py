"""The classifier of scikit-learn: its conventions, its labels, and what it gains."""

import io
from dataclasses import replace
from functools import cache, partial

import joblib
import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    get_scorer,
    make_scorer,
    recall_score,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricopt import ConfigError, at_least
from metricopt.estimators import metric_tuned
from metricopt.sklearn import MetricTunedClassifier

LOGISTIC = LogisticRegression(C=0.1, max_iter=1000)


@parametrize_with_checks(
    [MetricTunedClassifier(LogisticRegression(C=1), cv=3, queries=8)]
)
@pytest.mark.filterwarnings("ignore")
def test_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)
    assert not hasattr(estimator, "offsets_")  # checks work on copies


@cache
def digits():
    """Pixels and labels of digits, of which half the classes are rare: train, test."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    kept, tested = np.split(order, [1250])
    kept = kept[(labels[kept] < 5) | (np.arange(len(kept)) % 10 == 0)]
    return [(pixels[part] / 16, labels[part]) for part in (kept, tested)]


@cache
def tumours():
    """Noisy measures of tumours and names of what they are, rarely malignant."""
    inputs, benign = load_breast_cancer(return_X_y=True)
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    inputs += 3 * np.random.default_rng(0).normal(size=inputs.shape)
    kept = (benign == 1) | (np.arange(len(benign)) % 4 == 0)
    return inputs[kept], np.array(["malignant", "benign"])[benign[kept]]


def test_several_classes_gain_on_examples_that_chose_nothing():
    (inputs, labels), (test, truth) = digits()
    weak, score = LogisticRegression(C=0.2, max_iter=1000), balanced_accuracy_score
    plain = score(truth, clone(weak).fit(inputs, labels).predict(test))
    tuned = MetricTunedClassifier(weak, "balanced_accuracy")
    tuned.fit(inputs, labels)
    assert score(truth, tuned.predict(test)) > plain + 0.1
    assert tuned.metric_after_ > tuned.metric_before_
    assert tuned.expected_.low > 0
    assert tuned.n_queries_ <= 15
    assert tuned.report_.startswith("balanced_accuracy on ")
    assert tuned.offsets_.shape == (10,)
    # What the classifier says of examples stays what it was.
    expected = clone(weak).fit(inputs, labels).predict_proba(test)
    np.testing.assert_allclose(tuned.predict_proba(test), expected)
    shifted = np.log(expected) * tuned.scales_ + tuned.offsets_
    np.testing.assert_array_equal(tuned.predict(test), shifted.argmax(1))


def _with_scales(tune, found, *args, **settings):
    """Return what `tune` does, as if it had found offsets and scales that differ."""
    tuned = tune(*args, **settings)
    phi = torch.linspace(-1, 1, tuned.found.phi.numel())
    found.append(replace(tuned, found=replace(tuned.found, phi=phi)))
    return found[-1]


@pytest.mark.parametrize("load", [digits, lambda: (tumours(), tumours())])
def test_decisions_are_those_of_what_was_tuned(monkeypatch, load):
    (inputs, labels), (test, _) = load()
    found = []

    plain = metric_tuned.tune
    monkeypatch.setattr(metric_tuned, "tune", partial(_with_scales, plain, found))
    tuned = MetricTunedClassifier(LOGISTIC, "balanced_accuracy", cv=0.5)
    tuned.fit(inputs, labels)
    outputs = tuned._outputs(tuned.estimator_, test)
    expected = tuned.classes_[found[0].predict(outputs)]
    np.testing.assert_array_equal(tuned.predict(test), expected)
    assert (tuned.predict(test) != tuned.estimator_.predict(test)).any()


@pytest.mark.parametrize("estimator", [LOGISTIC, RidgeClassifier(), SVC(C=0.5)])
def test_names_of_labels_and_decision_values(estimator):
    inputs, labels = tumours()
    tuned = MetricTunedClassifier(estimator, "balanced_accuracy")
    tuned.fit(inputs, labels)
    assert tuned.classes_.tolist() == ["benign", "malignant"]
    assert set(tuned.predict(inputs)) == {"benign", "malignant"}
    assert tuned.offsets_.shape == (1,)
    assert tuned.offsets_[0] > 0  # malignant ones are rare
    found = recall_score(labels, tuned.predict(inputs), pos_label="malignant")
    plain = clone(estimator).fit(inputs, labels).predict(inputs)
    assert found > recall_score(labels, plain, pos_label="malignant")
    assert hasattr(tuned, "predict_proba") == hasattr(estimator, "predict_proba")


def found_costs(y_true, y_pred):
    """Cost of a missed tumour and of a false alarm, by their names."""
    missed = (y_true == "malignant") & (y_pred == "benign")
    return 4.0 * missed.mean() + ((y_true == "benign") & (y_pred != y_true)).mean()


METRICS = {
    "name of a scorer": ("f1_macro", {}),
    "scorer": (make_scorer(f1_score, pos_label="malignant"), {}),
    "named scorer": (get_scorer("balanced_accuracy"), {}),
    "scorer of costs": (make_scorer(found_costs, greater_is_better=False), {}),
    "function of scikit-learn": (partial(f1_score, pos_label="malignant"), {}),
    "function": (found_costs, {"higher_is_better": False}),
    "name of metricopt": ("g-mean", {}),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_get_the_labels_they_know(name):
    inputs, labels = tumours()
    metric, options = METRICS[name]
    tuned = MetricTunedClassifier(
        clone(LOGISTIC), metric, cv=0.5, queries=8, options=options
    ).fit(inputs, labels)
    values = [tuned.metric_before_, tuned.metric_after_]
    negated = name == "scorer of costs"
    assert all(value < 0 if negated else value > 0 for value in values)


def test_prefit_has_the_value_of_the_scorer():
    inputs, labels = tumours()
    fitted = clone(LOGISTIC).fit(inputs[::2], labels[::2])
    scorer = make_scorer(f1_score, pos_label="malignant")
    rest = inputs[1::2], labels[1::2]
    tuned = MetricTunedClassifier(fitted, scorer, cv="prefit")
    tuned.fit(*rest)
    assert tuned.estimator_ is fitted
    assert tuned.metric_before_ == pytest.approx(scorer(fitted, *rest))
    assert tuned.metric_after_ == pytest.approx(scorer(tuned, *rest))
    assert tuned.metric_after_ >= tuned.metric_before_


@pytest.mark.parametrize("cv", [2, 0.3, KFold(3, shuffle=True, random_state=0)])
def test_folds(cv):
    inputs, labels = tumours()
    tuned = MetricTunedClassifier(
        clone(LOGISTIC), cv=cv, queries=8, options={"seed": 1}
    )
    twice = [clone(tuned).fit(inputs, labels) for _ in range(2)]
    assert len({each.report_.split(" in ")[0] for each in twice}) == 1
    np.testing.assert_array_equal(twice[0].offsets_, twice[1].offsets_)
    count = np.ceil(0.3 * len(labels)) if cv == 0.3 else len(labels)
    assert f"on {count:.0f} examples" in twice[0].report_


def test_a_class_that_a_fold_does_not_train_on():
    inputs, labels = digits()[0]
    rare = (labels != 9) | (np.cumsum(labels == 9) <= 2)
    splits = [(np.flatnonzero(labels[rare] != 9), np.arange(rare.sum()))]
    tuned = MetricTunedClassifier(GaussianNB(), "accuracy", cv=splits, queries=8)
    assert tuned.fit(inputs[rare], labels[rare]).offsets_.shape == (10,)
    tuned.set_params(estimator=RidgeClassifier())
    with pytest.raises(ValueError, match="one for each of 10 classes, got shape"):
        tuned.fit(inputs[rare], labels[rare])


def test_a_search_over_settings_of_the_classifier_in_a_pipeline():
    inputs, labels = tumours()
    pipeline = make_pipeline(
        StandardScaler(),
        MetricTunedClassifier(LogisticRegression(), "balanced_accuracy", cv=2),
    )
    pipeline.set_params(metrictunedclassifier__queries=8)
    grid = {"metrictunedclassifier__estimator__C": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring="balanced_accuracy", cv=2)
    search.fit(inputs, labels)
    assert search.best_params_["metrictunedclassifier__estimator__C"] in (0.01, 1.0)
    assert search.score(inputs, labels) > 0.6
    stream = io.BytesIO()
    joblib.dump(search, stream)
    stream.seek(0)
    again = joblib.load(stream)
    np.testing.assert_array_equal(again.predict(inputs), search.predict(inputs))


def test_bounds_read_the_labels_they_know():
    inputs, labels = tumours()
    recall = make_scorer(recall_score, pos_label="malignant")
    tuned = MetricTunedClassifier(
        clone(LOGISTIC), "accuracy", constraints=[at_least(recall, 0.9)], queries=20
    ).fit(inputs, labels)
    plain = clone(LOGISTIC).fit(inputs, labels)
    assert "recall_score at least 0.9" in tuned.report_
    assert recall(tuned, inputs, labels) > recall(plain, inputs, labels)


class Watched(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the weights it was fitted with."""

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        self.sizes_ = len(y), sample_weight
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):  # noqa: N803
        return self.model_.predict_proba(X)

    def predict(self, X):  # noqa: N803
        return self.model_.predict(X)


def weighted(seen):
    """A metric that keeps the sums of weights and groups it gets."""

    def share_right(y_true, y_pred, sample_weight, group=None):
        assert len(sample_weight) == len(y_true) == len(y_pred)
        seen.append((float(sample_weight.sum()), group))
        return np.average(y_true == y_pred, weights=sample_weight)

    return share_right


def test_weights_reach_the_classifier_and_the_metric():
    inputs, labels = tumours()
    weights = 1 + np.arange(len(labels)) % 5
    group, seen = np.array(["a", "b"])[np.arange(len(labels)) % 2], []
    tuned = MetricTunedClassifier(
        Watched(), weighted(seen), cv=3, queries=8, options={"higher_is_better": True}
    )
    tuned.fit(inputs, labels, sample_weight=weights, group=group)
    assert tuned.estimator_.sizes_[0] == len(labels)
    np.testing.assert_array_equal(tuned.estimator_.sizes_[1], weights)
    assert seen[0][0] == weights.sum()
    assert set(seen[0][1]) == {"a", "b"}
    with pytest.raises(ValueError, match="neither the estimator nor the metric takes"):
        tuned.fit(inputs, labels, sample_weight=weights, money=weights)


def test_metadata_goes_where_it_is_requested():
    inputs, labels = tumours()
    weights = 1 + np.arange(len(labels)) % 5
    groups, seen = np.arange(len(labels)) // 7, []
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(weighted(seen)).set_score_request(sample_weight=True)
        estimator = Watched().set_fit_request(sample_weight=False)
        tuned = MetricTunedClassifier(estimator, scorer, cv=GroupKFold(3), queries=8)
        tuned.fit(inputs, labels, sample_weight=weights, groups=groups)
        assert tuned.estimator_.sizes_[1] is None
        assert seen[0][0] == weights.sum()
        unrequested = MetricTunedClassifier(Watched(), scorer, queries=8)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            unrequested.fit(inputs, labels, sample_weight=weights)


class Silent(ClassifierMixin, BaseEstimator):
    """A classifier without scores."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):  # noqa: N803
        return np.repeat(self.classes_[:1], len(X))


REFUSED = {
    "lacking": (
        {"estimator": Silent()},
        ValueError,
        "or decision_function, but a Silent",
    ),
    "metric": ({"metric": "f1macro"}, ConfigError, "did you mean 'f1_macro'"),
    "direction": ({"metric": found_costs}, ConfigError, "options={'higher_is_better'"),
    "queries": ({"queries": 2}, ConfigError, "queries must be at least"),
    "option": ({"options": {"steps_": 3}}, ConfigError, "unknown option 'steps_'"),
    "prefit": ({"cv": "prefit"}, NotFittedError, "not fitted yet"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fitted_is_refused(name):
    settings, kind, text = REFUSED[name]
    asked = {"estimator": GaussianNB(), "cv": 2} | settings
    with pytest.raises(kind, match=text):
        MetricTunedClassifier(**asked).fit(*tumours())


def test_decisions_that_nothing_improves_are_those_of_the_classifier():
    inputs, benign = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    tuned = MetricTunedClassifier(tree, "accuracy", queries=8)
    tuned.fit(inputs, benign)
    assert not tuned.offsets_.any()
    assert tuned.expected_ is None
    plain = clone(tree).fit(inputs, benign)
    np.testing.assert_array_equal(tuned.predict(inputs), plain.predict(inputs))
    with pytest.raises(NotFittedError):
        MetricTunedClassifier(tree).predict(inputs)


def test_weights_that_a_step_of_a_pipeline_would_lose_are_refused():
    inputs, labels = tumours()
    tuned = MetricTunedClassifier(make_pipeline(StandardScaler(), LOGISTIC))
    with pytest.raises(ValueError, match="takes no sample_weight in fit"):
        tuned.fit(inputs, labels, sample_weight=np.ones(len(labels)))


def test_a_bound_that_is_none_is_told():
    inputs, labels = tumours()
    tuned = MetricTunedClassifier(LOGISTIC, constraints=[("precision", 0.9)])
    with pytest.raises(ConfigError, match="must be at_least"):
        tuned.fit(inputs, labels)
