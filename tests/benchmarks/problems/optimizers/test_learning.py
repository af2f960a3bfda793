"""What decides a meta-training, and what is refused."""

import re
from dataclasses import replace

import pytest

from benchmarks.problems.images.tiers import cifar10
from benchmarks.problems.optimizers.learning import (
    OptimizerLearning,
    metric_queries,
)
from benchmarks.problems.tabular.tiers import A9A
from benchmarks.rows.learned_optimizers import learning_of
from benchmarks.runs.codec import decode, encode
from metricopt.errors import ConfigError
from metricopt.learned_optimizers.settings import OptimizerTraining
from tests.benchmarks.problems.optimizers.learning_cases import (
    BY_METRIC,
    JOINT,
    ON_LOSS,
    T,
)


def test_settings_are_read_back():
    changed = replace(JOINT, recipe={"replay": 8, "inner_steps": 10})
    for learning in (ON_LOSS, JOINT, BY_METRIC, changed):
        assert decode(OptimizerLearning, encode(learning)) == learning


def test_each_kind_is_trained_as_its_paper_says_but_for_changes():
    lstm = replace(ON_LOSS, kind="lstm", form={}, training={"iterations": 7})
    assert lstm.settings.estimator == "through-steps"
    assert lstm.settings.window == 20 and lstm.settings.iterations == 7
    assert lstm.settings.objective.loss_term == "sum"
    mlp = replace(lstm, kind="mlp")
    assert mlp.settings.estimator == "strategies"
    assert mlp.settings.objective.metric_weight == 0
    assert JOINT.settings.objective.metric_weight == 50
    assert ON_LOSS.settings.objective.metric_weight == 0


@pytest.mark.parametrize("problem", [A9A.at("local"), cifar10("local")])
def test_rows_differ_in_what_judges_their_runs(problem):
    with_f, metric, statistics = (
        learning_of(problem, name)
        for name in ("value function", "metric", "statistics")
    )
    assert with_f.settings == metric.settings == statistics.settings
    large = {"replay": 8, "inner_steps": 10}  # of MetricOpt's row on images
    assert with_f.recipe == (None if problem.name == "a9a" else large)
    assert metric.recipe is statistics.recipe is None
    # Another revision is another optimizer; those of the loss have the first one.
    assert replace(with_f, revision=1) != with_f
    assert learning_of(problem, "loss").revision == 1


def test_own_queries_are_those_at_which_the_metric_is_seen():
    assert ON_LOSS.own_queries == 0
    assert JOINT.own_queries == 3
    # 5 % of the steps from sixty on.
    assert replace(JOINT, steps=100).own_queries == 5


def test_the_queries_of_a_training_by_the_metric_are_every_step_of_every_run():
    training = OptimizerTraining(
        iterations=4, tasks=3, pairs=2, first_steps=2, lengthening=0.5
    )
    # Runs of 2, 6, 10, 10 steps, each with its start, of 3 tasks in 4 copies.
    assert metric_queries(training, 10) == 12 * (3 + 7 + 11 + 11)
    assert metric_queries(BY_METRIC.settings, T) == BY_METRIC.queries == 84


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps >= 1, got steps=0"),
        ({"supervision": "labels"}, "supervision must be one of 'value function', "),
        ({"queries": 0}, "supervision by 'value function' needs queries >= 1, got 0"),
        ({"kind": "lstm", "form": {}}, "Algorithm S1 trains a metricopt-mlp with the"),
        ({"form": {}}, "metric change, gradient size, time; got metricopt-mlp with"),
        ({"kind": "gru"}, "unknown learned optimizer 'gru'; known: lstm, "),
        ({"form": {"width": 3}}, "learned optimizer 'metricopt-mlp': "),
        ({"recipe": {"speed": 1}}, "has no setting speed"),
        (
            {"supervision": "metric", "recipe": {"replay": 8}},
            "needs the supervision 'value function', got 'metric'",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        replace(JOINT, **changes)


def test_an_unknown_setting_of_the_training_is_refused():
    with pytest.raises(ConfigError, match="has no setting speed"):
        replace(ON_LOSS, training={"speed": 1}).settings  # noqa: B018
