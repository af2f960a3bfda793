"""Fitted classifiers: their splits, their outputs, and metrics that people tune for."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairlearn.metrics import equalized_odds_difference
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.fitted.estimators import ESTIMATORS, fitted, logits
from benchmarks.problems.fitted.table import GROUP, load_table
from benchmarks.problems.fitted.tiers import CANCER, DIGITS, EIGHT, TABLES
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError
from metricopt.metrics.constrained import met
from metricopt.reading.columns import Columned


def pipeline_of(problem, replicate=0, **changes):
    return make_pipeline(replace(problem, **changes).here(True).pipeline(), replicate)


@pytest.mark.parametrize("problem", [CANCER, DIGITS, EIGHT], ids=lambda p: p.name)
def test_splits_share_test_and_nothing_else(problem):
    first, second = (pipeline_of(problem, number) for number in (0, 1))
    count = len(first.table.targets)
    train, pool, test = first._places
    everything = torch.cat([train, pool, test])
    assert torch.equal(everything.sort().values, torch.arange(count))
    assert torch.equal(test, second._places[2])
    assert not torch.equal(train, second._places[0])
    assert len(first.splits.observe) == min(2_000, count // 6)
    assert len(first.splits.test) == count - count // 2 - count % 2


@pytest.mark.parametrize("name", ESTIMATORS)
def test_logits_decide_as_the_classifier_does(name):
    for problem in (DIGITS, CANCER):
        table = load_table(problem.here(True).data)
        inputs, targets = table.inputs[:300], table.targets[:300]
        classifier = fitted(name, inputs, targets, seed=0)
        found = logits(classifier, table.inputs[300:], table.classes)
        decided = classifier.predict(table.inputs[300:].numpy())
        ours = found.argmax(1) if table.classes > 2 else (found[:, 0] >= 0).long()
        assert (ours.numpy() == decided).all()


def test_a_class_the_classifier_never_saw_is_least_likely():
    table = load_table(DIGITS.here(True).data)
    seen = table.targets != 3
    classifier = fitted("logistic", table.inputs[seen], table.targets[seen], seed=0)
    found = logits(classifier, table.inputs[~seen], table.classes)
    assert found.shape == (int((~seen).sum()), 10)
    assert (found.argmin(1) == 3).all()


def test_observing_fewer_keeps_train_and_test():
    whole, few = pipeline_of(DIGITS), pipeline_of(DIGITS, observed=100)
    assert len(few.splits.observe) == 100
    assert torch.equal(few.splits.observe.targets, whole.splits.observe.targets[:100])
    assert torch.equal(few.splits.test.targets, whole.splits.test.targets)


def test_a_fitted_classifier_is_not_trained_further():
    with pytest.raises(ConfigError, match="not trained further"):
        pipeline_of(CANCER).training({})


def test_bounds_bind_and_names_differ():
    names = [problem.name for problem in TABLES]
    assert len(set(names)) == len(names)
    for problem in TABLES:
        assert 0 < problem.bound < 1


@pytest.fixture(scope="module")
def decisions():
    splits = pipeline_of(EIGHT).splits
    outputs = splits.test.batch(slice(None)) + 3.0
    return outputs, splits.test.targets


def test_metrics_are_those_of_scikit_learn(decisions):
    outputs, targets = decisions
    truth, decided = targets.numpy(), (outputs[:, 0] >= 0).long().numpy()
    recalls = recall_score(truth, decided, average=None)
    expected = {
        "accuracy": (truth == decided).mean(),
        "balanced-accuracy": balanced_accuracy_score(truth, decided),
        "precision": precision_score(truth, decided),
        "sensitivity": recalls[1],
        "least-recall": recalls.min(),
    }
    for name, value in expected.items():
        assert metric_of(Unit(name)).value(outputs, targets) == pytest.approx(value)


def test_the_gap_between_groups_is_that_of_fairlearn(decisions):
    outputs, targets = decisions
    groups = torch.arange(len(targets)) % 3
    given = Columned(targets, {GROUP: groups})
    found = metric_of(Unit("equalized-odds")).value(outputs, given)
    decided = (outputs[:, 0] >= 0).long().numpy()
    assert found == pytest.approx(
        equalized_odds_difference(
            targets.numpy(), decided, sensitive_features=np.asarray(groups)
        )
    )


@pytest.mark.parametrize(("side", "bound"), [("at_least", 0.2), ("at_most", 0.9)])
def test_a_bound_is_met_or_not(decisions, side, bound):
    settings = {"objective": "sensitivity", "of": "precision"}
    loose = metric_of(Unit("bounded", {**settings, side: bound}))
    tight = metric_of(Unit("bounded", {**settings, side: 1 - bound}))
    outputs, targets = decisions
    assert met(loose.each(outputs[None], targets)).all()
    assert not met(tight.each(outputs[None], targets)).any()
    assert loose.value(outputs, targets) < 0.5 <= tight.value(outputs, targets)
