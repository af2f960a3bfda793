"""The threshold grid against scikit-learn on a classifier of its own."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer, zero_one_loss
from sklearn.model_selection import TunedThresholdClassifierCV

from baselines.post_hoc.threshold_grid import tune_threshold_on_grid
from baselines.validation import Validation
from metricopt.errors import BudgetExceededError, ConfigError, DataError, ShapeError
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split


def problem(examples=300):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(examples, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(examples, generator=generator, dtype=torch.float64)
    return inputs, (inputs.sum(1) + 2 * noise > 1.5).long()


def tune(outputs, targets, *, metric="f1", limit=None, **more):
    made = make_metric(metric)
    validation = Validation(made, Split(targets[:, None], targets), limit=limit)
    found = tune_threshold_on_grid(outputs, validation, **more)
    assert found.queries == validation.queries
    return found


@pytest.mark.parametrize(
    ("metric", "scorer"),
    [
        ("f1", make_scorer(f1_score, zero_division=0)),
        ("mcr", make_scorer(zero_one_loss, greater_is_better=False)),
    ],
)
@pytest.mark.parametrize("thresholds", [20, 100])
def test_equals_what_scikit_learn_finds_by_itself(metric, scorer, thresholds):
    inputs, targets = problem()
    x, y = inputs.numpy(), targets.numpy()
    classifier = LogisticRegression().fit(x, y)
    theirs = TunedThresholdClassifierCV(
        classifier, scoring=scorer, thresholds=thresholds, cv="prefit", refit=False
    ).fit(x, y)
    outputs = torch.from_numpy(classifier.decision_function(x))[:, None]
    found = tune(outputs, targets, metric=metric, thresholds=thresholds)
    assert found.queries == thresholds
    assert found.threshold == pytest.approx(theirs.best_threshold_, rel=1e-12)
    assert found.value == pytest.approx(abs(theirs.best_score_))
    decided = (found.shift(outputs)[:, 0] > 0).numpy()
    assert np.array_equal(decided, theirs.predict(x) == 1)
    assert make_metric(metric).value(found.shift(outputs), targets) == found.value


def test_no_more_queries_are_made_than_allowed():
    inputs, targets = problem()
    with pytest.raises(BudgetExceededError, match="exceed the limit of 99"):
        tune(inputs[:, :1], targets, limit=99)


def test_bad_arguments_are_named():
    _, targets = problem()
    with pytest.raises(ShapeError, match="a threshold grid needs one logit"):
        tune(torch.zeros(300, 2), targets)
    with pytest.raises(DataError, match="needs scores that differ"):
        tune(torch.zeros(300, 1), targets)
    with pytest.raises(ConfigError, match="a grid needs thresholds >= 2, got "):
        tune(torch.arange(300.0)[:, None], targets, thresholds=1)
