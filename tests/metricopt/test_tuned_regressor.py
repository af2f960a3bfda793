"""The regressor of scikit-learn: its conventions, and what scale and shift gain."""

from functools import cache

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import (
    get_scorer,
    make_scorer,
    mean_absolute_error,
    mean_pinball_loss,
    mean_squared_error,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricopt import ConfigError, MetricError, at_least, at_most
from metricopt.sklearn import MetricTunedRegressor


@parametrize_with_checks([MetricTunedRegressor(Ridge(), cv=3, queries=8)])
@pytest.mark.filterwarnings("ignore")
def test_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)
    assert not hasattr(estimator, "shift_")  # checks work on copies


@cache
def diabetes():
    """Measures of patients and how far their disease went: train, test."""
    inputs, values = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(values))
    return [(inputs[part], values[part]) for part in np.split(order, [300])]


def shortfall(y_true, y_pred):
    """Mean cost: what is predicted too low costs nine times what is too high."""
    return mean_pinball_loss(y_true, y_pred, alpha=0.9)


LOW = {"options": {"higher_is_better": False}}


@cache
def tuned():
    train, _ = diabetes()
    return MetricTunedRegressor(Ridge(), shortfall, queries=14, **LOW).fit(*train)


def test_a_quantile_gains_on_examples_that_chose_nothing():
    train, (inputs, values) = diabetes()
    plain, found = Ridge().fit(*train), tuned()
    before = shortfall(values, plain.predict(inputs))
    after = shortfall(values, found.predict(inputs))
    assert after < 0.75 * before
    assert found.metric_after_ < found.metric_before_
    assert found.expected_.low - 3 < before - after < found.expected_.high + 3
    assert found.n_queries_ <= 14 and "shortfall" in found.report_
    expected = plain.predict(inputs) * found.scale_ + found.shift_
    assert found.predict(inputs) == pytest.approx(expected)


def test_the_value_before_is_the_one_of_out_of_fold_predictions():
    inputs, values = diabetes()[0]
    folds = [*KFold(5).split(inputs)]
    predicted = np.zeros(len(values))
    for train, held_out in folds:
        fitted = Ridge().fit(inputs[train], values[train])
        predicted[held_out] = fitted.predict(inputs[held_out])
    assert tuned().metric_before_ == pytest.approx(shortfall(values, predicted))
    after = predicted * tuned().scale_ + tuned().shift_
    assert tuned().metric_after_ == pytest.approx(shortfall(values, after), rel=1e-5)


@pytest.mark.parametrize(
    "metric",
    [
        "neg_root_mean_squared_error",
        make_scorer(mean_squared_error, greater_is_better=False),
        mean_absolute_error,
        "r2",
    ],
)
def test_prefit_has_the_value_of_the_scorer(metric):
    train, test = diabetes()
    plain = Ridge(alpha=0.01).fit(*train)
    found = MetricTunedRegressor(plain, metric, cv="prefit", queries=8).fit(*test)
    assert found.estimator_ is plain
    if metric is mean_absolute_error:
        expected = metric(test[1], plain.predict(test[0]))
    else:
        scorer = get_scorer(metric) if isinstance(metric, str) else metric
        expected = scorer(plain, *test)
    assert found.metric_before_ == pytest.approx(expected)


def test_predictions_that_nothing_improves_are_those_of_the_regressor():
    (inputs, values), _ = diabetes()
    found = MetricTunedRegressor(LinearRegression(), "r2", queries=12)
    found.fit(inputs, values)
    assert (found.scale_, found.shift_, found.expected_) == (1.0, 0.0, None)
    plain = LinearRegression().fit(inputs, values).predict(inputs)
    assert np.array_equal(found.predict(inputs), plain)


class OneColumn(Ridge):
    """Predicts [N, 1], as regressors of several outputs do."""

    def predict(self, X):  # noqa: N803
        return super().predict(X)[:, None]


@pytest.mark.parametrize(
    ("metric", "settings", "gains"), [("r2", {}, False), (shortfall, LOW, True)]
)
def test_predictions_are_a_vector_whatever_was_gained(metric, settings, gains):
    (inputs, values), _ = diabetes()
    found = MetricTunedRegressor(OneColumn(alpha=0.1), metric, queries=14, **settings)
    found.fit(inputs, values)
    assert ((found.scale_, found.shift_) != (1.0, 0.0)) == gains
    assert found.predict(inputs).shape == values.shape


def test_a_search_in_a_pipeline_and_a_copy_by_joblib(tmp_path):
    train, (inputs, _) = diabetes()
    scorer = make_scorer(shortfall, greater_is_better=False)
    regressor = MetricTunedRegressor(Ridge(), scorer, cv=0.5, queries=8)
    pipeline = make_pipeline(StandardScaler(), regressor)
    grid = {"metrictunedregressor__estimator__alpha": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, scoring=scorer, cv=2).fit(*train)
    assert search.cv_results_["mean_test_score"].max() < 0
    joblib.dump(search.best_estimator_, tmp_path / "found")
    loaded = joblib.load(tmp_path / "found")
    assert np.array_equal(loaded.predict(inputs), search.predict(inputs))


def test_bounds_and_weights():
    inputs, values = (part[:100] for part in diabetes()[0])

    def share_below(y_true, y_pred):
        return float((y_pred >= y_true).mean())

    bounds = [at_least(share_below, 0.7)]
    weights = np.where(np.arange(len(values)) % 2, 2.0, 0.5)
    found = MetricTunedRegressor(
        Ridge(),
        mean_absolute_error,
        constraints=bounds,
        queries=30,
        options={"method": "cma-es", "no_harm": False},
    )
    found.fit(inputs, values, sample_weight=weights)
    assert (found.predict(inputs) >= values).mean() > 0.6
    assert "share_below at least 0.7" in found.report_
    fitted = Ridge().fit(inputs, values, sample_weight=weights)
    assert found.estimator_.coef_ == pytest.approx(fitted.coef_)


class Pairs(RegressorMixin, BaseEstimator):
    """A regressor of two values."""

    def fit(self, inputs, values):
        self.fitted_ = True
        return self

    def predict(self, inputs):
        return np.zeros((len(inputs), 2))


# Of some versions of scikit-learn, where its error is expected here.
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_what_cannot_be_fitted_is_refused():
    (inputs, values), _ = diabetes()
    with pytest.raises(ValueError, match=r"one value for each example.*\[60, 2\]"):
        MetricTunedRegressor(Pairs()).fit(inputs, values)
    with pytest.raises(ValueError, match="should be a 1d array"):
        MetricTunedRegressor(Ridge()).fit(inputs, np.stack([values] * 2, 1))
    with pytest.raises(MetricError, match="'roc_auc_score' raised ValueError"):
        MetricTunedRegressor(Ridge(), roc_auc_score).fit(inputs, values)
    with pytest.raises(ConfigError, match="does not say which direction is better"):
        MetricTunedRegressor(Ridge(), shortfall).fit(inputs, values)
    with pytest.raises(ValueError, match="neither the estimator nor the metric takes"):
        MetricTunedRegressor(Ridge()).fit(inputs, values, amount=values)
    bounds = [at_most("accuracy", 0.5)]
    with pytest.raises(MetricError, match="'accuracy' raised ValueError: Classificat"):
        MetricTunedRegressor(Ridge(), constraints=bounds).fit(inputs, values)
    with pytest.raises(NotFittedError):
        MetricTunedRegressor(Ridge()).predict(inputs)
