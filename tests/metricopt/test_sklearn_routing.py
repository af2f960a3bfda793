"""Arguments of `fit` beside X and y, with metadata routing and without."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from metricopt import ConfigError, at_least, make_metric
from metricopt.estimators import metric_tuned
from metricopt.sklearn import MetricTunedClassifier, MetricTunedRegressor

INPUTS, LABELS = make_classification(400, weights=[0.8], random_state=0)
LOGISTIC = LogisticRegression().fit(INPUTS, LABELS)
PATIENTS = np.arange(400) // 20
SEX = np.arange(400) % 2
OPTIONS = {"higher_is_better": True}


class Fitted(ClassifierMixin, BaseEstimator):
    """A fitted classifier that finds too few, and would take groups in `fit`."""

    classes_ = np.array([0, 1])

    def fit(self, X, y, groups=None):  # noqa: N803
        raise AssertionError("it is fitted before")

    def decision_function(self, X):  # noqa: N803
        return LOGISTIC.decision_function(X) - 4

    def predict(self, X):  # noqa: N803
        return (self.decision_function(X) > 0).astype(int)

    def __sklearn_is_fitted__(self):
        return True


@pytest.fixture(params=[False, True], ids=["names", "routing"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.fixture
def given(monkeypatch):
    """What `tune` is called with; nothing is tuned."""
    calls = []

    def called(outputs, targets, metric, /, **settings):
        calls.append(settings)
        raise InterruptedError

    monkeypatch.setattr(metric_tuned, "tune", called)

    def fit(tuned, **params):
        with pytest.raises(InterruptedError):
            tuned.fit(INPUTS, LABELS, **params)
        return calls[-1]

    return fit


def prefit(metric="f1", *, queries=6, **settings):
    kept = {"cv": "prefit", "queries": queries, **settings}
    return MetricTunedClassifier(Fitted(), metric, **kept)


def clusters(settings):
    """The groups that belong together, by their first examples."""
    numbers = settings["columns"][settings["clusters"]].tolist()
    return [numbers.index(each) for each in numbers]


OWN = [20 * each for each in PATIENTS.tolist()]


def of_groups(y_true, y_pred, groups=None):
    """The least accuracy of a group; -1 without groups."""
    if groups is None:
        return -1.0
    right = y_true == y_pred
    return float(min(right[groups == each].mean() for each in set(groups)))


def test_fit_returns_where_nothing_is_given(routing):
    assert prefit().fit(INPUTS, LABELS, groups=None).n_queries_ <= 6
    tuned = MetricTunedRegressor(Ridge(), cv=2, queries=6)
    assert tuned.fit(INPUTS, LABELS).n_queries_ <= 6


def test_groups_beside_a_fitted_classifier_are_clusters(routing):
    found = prefit(queries=20).fit(INPUTS, LABELS, groups=PATIENTS)
    assert "new values of 'groups of fit'" in found.report_


@pytest.mark.parametrize(
    "form",
    [
        lambda groups: groups.astype(str),
        lambda groups: groups.reshape(-1, 1),
        lambda groups: pd.Series(groups, index=np.random.permutation(len(groups))),
        lambda groups: pd.Series(groups, dtype="category"),
        lambda groups: pd.DataFrame({"patient": groups}),
    ],
)
def test_groups_come_in_every_form(given, form):
    whole = given(prefit(), groups=form(PATIENTS))
    assert clusters(whole) == OWN


def test_an_estimator_that_would_take_groups_is_fitted(given, routing):
    fitted = Fitted()
    if routing:
        fitted.set_fit_request(groups=True)
    tuned = MetricTunedClassifier(fitted, cv="prefit", queries=8)
    assert clusters(given(tuned, groups=PATIENTS)) == OWN


@pytest.mark.parametrize("kind", [MetricTunedClassifier, MetricTunedRegressor])
def test_a_tuned_estimator_requests_nothing_itself(kind):
    """A request on it would reach nobody."""
    assert hasattr(LogisticRegression, "set_fit_request")
    assert not hasattr(kind, "set_fit_request")


def test_what_groups_are_called_is_nothing_to_the_metric(routing):
    """Numbers of patients are no weights, and names no groups that a metric reads."""
    found = [
        prefit(queries=20).fit(INPUTS, LABELS, groups=groups)
        for groups in (PATIENTS % 10, (PATIENTS % 10).astype(str))
    ]
    assert found[0].expected_ == found[1].expected_ is not None
    np.testing.assert_array_equal(found[0].offsets_, found[1].offsets_)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (SEX, "of 10 kinds or more: 2 are too few to tell of new ones"),
        (PATIENTS[1:], "one value for each of the 400 examples of X, .* \\[399\\]"),
        (np.stack([SEX, PATIENTS], 1), "got values of shape \\[400, 2\\]"),
        (np.where(SEX == 1, np.nan, PATIENTS), "got none for 200 of 400"),
    ],
)
def test_groups_that_say_nothing_of_new_ones_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        prefit().fit(INPUTS, LABELS, groups=groups)


def test_a_metric_may_take_groups_of_the_examples(given, routing):
    tuned = prefit(of_groups, options=OPTIONS)
    few = given(tuned, groups=SEX)
    assert few["columns"]["groups"].tolist() == SEX.tolist() and "clusters" not in few
    both = given(tuned, groups=PATIENTS)
    assert both["columns"]["groups"].tolist() == PATIENTS.tolist()
    assert clusters(both) == OWN
    bounded = prefit(constraints=[at_least(of_groups, 0.1)])
    assert given(bounded, groups=SEX)["columns"]["groups"].tolist() == SEX.tolist()


def test_the_metric_gets_its_groups(routing):
    found = prefit(of_groups, options=OPTIONS).fit(INPUTS, LABELS, groups=SEX)
    own = of_groups(LABELS, Fitted().predict(INPUTS), SEX)
    assert found.metric_before_ == pytest.approx(own)


def of_money(y_true, y_pred, money=None):
    return 0.5 if money is None else accuracy_score(y_true, y_pred)


def requested(function, **requests):
    return make_scorer(function).set_score_request(**requests)


def test_scorers_get_what_they_request():
    with sklearn.config_context(enable_metadata_routing=True):
        other = requested(of_groups, groups="sex")
        declines, asks = (requested(of_money, money=own) for own in (False, True))
        named = {"groups": PATIENTS, "sex": SEX}
        for cv, estimator in (("prefit", Fitted()), (GroupKFold(3), Ridge())):
            kind = MetricTunedClassifier if cv == "prefit" else MetricTunedRegressor
            tuned = kind(estimator, other, cv=cv, queries=8)
            router = tuned.get_metadata_routing()
            assert router.consumes("fit", named) == {*named}
        found = prefit(other, queries=20).fit(INPUTS, LABELS, **named)
        own = of_groups(LABELS, Fitted().predict(INPUTS), SEX)
        assert found.metric_before_ == pytest.approx(own)
        assert "new values" in found.report_
        for metric, bound, value in ((asks, declines, None), (declines, asks, 0.5)):
            tuned = prefit(metric, constraints=[at_least(bound, 0.0)])
            found = tuned.fit(INPUTS, LABELS, money=SEX)
            right = accuracy_score(LABELS, Fitted().predict(INPUTS))
            assert found.metric_before_ == pytest.approx(value or right)
        with pytest.raises(TypeError, match="money"):
            prefit(declines).fit(INPUTS, LABELS, money=SEX)
        needs = make_scorer(lambda y_true, y_pred, money: 1.0)
        with pytest.raises(ConfigError, match=r"set_score_request\(money=True\)"):
            prefit(needs).fit(INPUTS, LABELS)


def test_groups_pass_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        whole = make_pipeline(FunctionTransformer(), prefit(queries=20))
        whole.fit(INPUTS, LABELS, groups=PATIENTS)
    assert "new values" in whole[-1].report_


def test_what_nobody_takes_is_refused():
    with pytest.raises(ValueError, match="no metric takes sample_weight"):
        prefit(of_money, options=OPTIONS).fit(INPUTS, LABELS, sample_weight=SEX)
    with pytest.raises(ConfigError, match="options cannot hold offsets_by"):
        prefit(options={"offsets_by": "groups"}).fit(INPUTS, LABELS, groups=PATIENTS)


def test_weights_reach_the_metric_of_a_fitted_classifier():
    weights = 1.0 + SEX
    tuned = prefit(f1_score)
    found = tuned.fit(INPUTS, LABELS, sample_weight=weights)
    own = f1_score(LABELS, Fitted().predict(INPUTS), sample_weight=weights)
    assert found.metric_before_ == pytest.approx(own)


def test_scorers_that_request_different_values_get_their_own():
    of_sex, of_patients = (
        of_groups(LABELS, Fitted().predict(INPUTS), groups)
        for groups in (SEX, PATIENTS)
    )
    assert of_sex != of_patients
    named = {"groups": PATIENTS, "sex": SEX}
    with sklearn.config_context(enable_metadata_routing=True):
        sex, own = (requested(of_groups, groups=name) for name in ("sex", True))
        for metric, other, value in ((sex, own, of_sex), (own, sex, of_patients)):
            tuned = prefit(metric, constraints=[at_least(other, 0.0)])
            tuned.fit(INPUTS, LABELS, **named)
            assert tuned.metric_before_ == pytest.approx(value)
        weighs = get_scorer("recall").set_score_request(sample_weight="money")
        tuned = prefit(f1_score, constraints=[at_least(weighs, 0.0)])
        tuned.fit(INPUTS, LABELS, money=1 + 9 * SEX)
    plain = f1_score(LABELS, Fitted().predict(INPUTS))
    assert tuned.metric_before_ == pytest.approx(plain)


def test_a_scorer_gets_what_it_requests_over_what_it_was_made_with():
    def kept(y_true, y_pred, **more):
        return more.get("money", np.zeros(1)).max() / 100

    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(kept, money=np.ones(1))
        with pytest.warns(UserWarning, match="will be overridden by passed metadata"):
            scorer = scorer.set_score_request(money=True)
        found = prefit(scorer).fit(INPUTS, LABELS, money=50 * SEX)
    assert found.metric_before_ == 0.5


def test_metrics_of_ours_get_their_columns(routing):
    @partial(make_metric, higher_is_better=True)
    def right(outputs, targets, money):
        return ((outputs > 0) == targets)[money > 1].mean()

    found = prefit(right).fit(INPUTS, LABELS, money=1.0 + SEX)
    chosen = (Fitted().predict(INPUTS) == LABELS)[SEX == 1]
    assert found.metric_before_ == pytest.approx(chosen.mean())
    with pytest.raises(ConfigError, match="also needs 'money': pass it to fit"):
        prefit(right).fit(INPUTS, LABELS)


@pytest.mark.parametrize("count", [9, 10, 11])
def test_a_metric_looks_at_up_to_ten_groups(given, routing, count):
    settings = given(prefit(of_groups, options=OPTIONS), groups=PATIENTS % count)
    assert ("clusters" in settings) == (count > 10)


def test_groups_of_a_metric_alone_may_be_anything(given):
    arms = np.where(SEX == 1, "None", "aspirin")
    settings = given(prefit(of_groups, options=OPTIONS), groups=arms)
    assert set(settings["columns"]["groups"]) == {"None", "aspirin"}


class Random(GroupsConsumerMixin, KFold):
    """A splitter that gets groups and does not keep them together."""

    def split(self, X, y, groups):  # noqa: N803
        return super().split(X, y)


@pytest.mark.parametrize("cv", [Random(2), LeaveOneGroupOut()])
def test_what_the_gain_is_on_is_told_where_it_is_not_on_new_groups(cv):
    groups = np.arange(400) % (20 if isinstance(cv, Random) else 3)
    tuned = MetricTunedClassifier(LogisticRegression(), "f1", cv=cv, queries=20)
    with sklearn.config_context(enable_metadata_routing=True):
        tuned.fit(INPUTS[:, :3], LABELS, groups=groups)
    assert "new values" not in tuned.report_
    told = "That is on other examples of these groups" in tuned.report_
    assert told == (tuned.expected_ is not None)


def test_the_estimator_gets_what_is_no_value_for_each_example():
    class Asked(Fitted):
        def fit(self, X, y, rounds=None, weights=None):  # noqa: N803
            self.given_ = rounds, len(weights), len(y)
            return self

    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Asked().set_fit_request(rounds=True, weights=True)
        tuned = MetricTunedClassifier(estimator, "f1", cv=2, queries=6)
        tuned.fit(INPUTS, LABELS, rounds=[5, 6], weights=SEX.tolist())
    assert tuned.estimator_.given_ == ([5, 6], 400, 400)
