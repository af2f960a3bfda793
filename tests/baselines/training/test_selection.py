"""Which epoch of a training is kept, by which score."""

import math

import pytest
import torch

from baselines.losses.cross_entropy import cross_entropy
from baselines.training.loop import Hooks, train
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.validation import Validation
from metricopt.errors import (
    BudgetExceededError,
    ConfigError,
    DataError,
    DivergedError,
)
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split
from tests.baselines.training.runs import image_run, make_run, same, weights


def test_best_epoch_is_kept_and_callbacks_see_every_one(network, data):
    epochs = []
    run = make_run(network, data, balanced=False)
    best = train(run, hooks=Hooks(epochs.append))
    scores = [epoch.observe_score for epoch in epochs]
    assert [epoch.number for epoch in epochs] == list(range(1, 9))
    assert {epoch.epochs for epoch in epochs} == {8}
    assert [epoch.train_loss for epoch in epochs] == run.losses
    assert best.score == min(scores)
    assert best.epoch == scores.index(min(scores)) + 1
    kept = cross_entropy(predict(network, data.observe.inputs), data.observe.targets)
    assert float(kept) == pytest.approx(best.score, rel=1e-6)


def test_last_epoch_is_kept_on_request(network, data):
    epochs = []
    run = make_run(network, data, learning_rate=0.3, keep_best=False, balanced=False)
    best = train(run, hooks=Hooks(epochs.append))
    assert (best.epoch, best.score) == (8, epochs[-1].observe_score)
    kept = cross_entropy(predict(network, data.observe.inputs), data.observe.targets)
    assert float(kept) == pytest.approx(best.score, rel=1e-6)


def test_without_a_score_the_last_epoch_is_kept():
    epochs = []
    run = image_run(Training(3, 0.05, keep_best=False))
    best = train(run, hooks=Hooks(epochs.append))
    assert (best.epoch, best.score) == (3, math.inf)
    assert [epoch.observe_score for epoch in epochs] == [None] * 3
    assert len(run.seconds) == 3
    with pytest.raises(ConfigError, match="keep_best needs observe: examples, or"):
        image_run(Training(1, 0.1))


def test_a_score_of_ones_own_chooses_the_epoch(network, data):
    scores = iter([3.0, 1.0, 2.0])
    kept = []

    def score(scored):
        assert scored is network
        kept.append(weights(scored))
        return next(scores)

    best = train(make_run(network, data, epochs=3, observe=score))
    assert (best.epoch, best.score) == (2, 1.0)
    assert same(kept[1], network.state_dict())


def test_no_queries_left_leaves_the_best_state(network, data):
    validation = Validation(make_metric("f1"), data.observe, limit=3)
    kept, scores = [], []

    def score(scored):
        outputs = predict(scored, data.observe.inputs)
        scores.append(float(validation.costs(outputs[None])))
        kept.append(weights(scored))
        return scores[-1]

    run = make_run(network, data, observe=score, learning_rate=0.3)
    with pytest.raises(BudgetExceededError, match="exceed the limit of 3"):
        train(run)
    assert (validation.queries, run.epoch) == (3, 3)
    assert run.best.epoch == scores.index(min(scores)) + 1
    assert same(kept[run.best.epoch - 1], network.state_dict())
    assert not network.training


def test_a_score_that_is_not_finite_stops_the_training(network, data):
    with pytest.raises(DivergedError, match="became nan in epoch 1 of 8"):
        train(make_run(network, data, observe=lambda _network: math.nan))


def test_balanced_observe_needs_two_classes(network, data):
    ones = Split(data.observe.inputs, torch.ones_like(data.observe.targets))
    with pytest.raises(DataError, match=r"at least two classes, got only class \[1\]"):
        make_run(network, data, observe=ones)
