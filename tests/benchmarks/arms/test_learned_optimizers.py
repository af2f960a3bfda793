"""Runs of optimizers that were meta-trained before: what they cost, and where."""

from dataclasses import replace

import pytest

from benchmarks.arms.contract import run_arm, sees
from benchmarks.arms.learned_optimizers import META_TRAINING, optimizers_of
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.notes import META_STEPS
from metricopt.errors import ConfigError
from tests.benchmarks.arms.arm_cases import assert_values, record_of
from tests.benchmarks.problems.optimizers.learning_cases import (
    JOINT,
    ON_LOSS,
    learned_spec,
)
from tests.benchmarks.problems.pipeline_cases import DIGIT, STEPS, tabular_unit

# Trained for short runs, so that tests are fast.
pytestmark = pytest.mark.filterwarnings("ignore:the optimizer was trained for runs of")


def test_a_run_is_charged_with_its_meta_training():
    spec = learned_spec(JOINT, 45)
    record = record_of(spec)
    # 18 queries of the meta-training, and the steps that are shown the metric.
    own = sum(map(JOINT.fresh(0).observes, range(STEPS)))
    assert record.shared_queries == 18
    assert record.queries == 18 + own
    assert record.queried == {"observe": 18 + 2 * own}
    assert record.trace[0].queries == 18
    assert record.gradient_steps == STEPS
    # Each iteration has 2 runs of line 3, and 2 in 2 copies.
    assert record.notes[META_STEPS] == 3 * (2 + 4) * JOINT.steps
    assert META_TRAINING in record.seconds
    assert_values(record.test["f1"], 2)
    assert sees(spec.arm) == "loss gradients"


def test_one_without_metric_makes_no_query():
    record = record_of(learned_spec(ON_LOSS))
    assert (record.queries, record.queried) == (0, {})


def test_several_optimizers_of_a_network_have_meta_tests_each():
    record = record_of(learned_spec(ON_LOSS, value_functions=2))
    assert len(record.test["f1"]) == 4
    assert record.notes[META_STEPS] == [(3 * 4 + 2 * 8) * ON_LOSS.steps] * 2
    first, second = optimizers_of(learned_spec(ON_LOSS, value_functions=2))
    assert first.kept().facts["weights"] != second.kept().facts["weights"]


def test_one_of_another_pipeline_is_used_as_it_was_learned_there():
    spec, other = learned_spec(ON_LOSS), tabular_unit(problem=DIGIT)
    moved = replace(spec, pipeline=other, arm=replace(spec.arm, source=spec.pipeline))
    assert optimizers_of(moved) == optimizers_of(spec)
    assert optimizers_of(replace(spec, pipeline=other)) != optimizers_of(spec)
    chosen = run_arm(moved, make_pipeline(other, moved.replicate))
    assert chosen.choice.rows == 2


def test_a_budget_below_the_meta_training_is_refused():
    spec = learned_spec(JOINT, 17)
    with pytest.raises(ConfigError, match="a budget of 17 queries must allow the 18"):
        run_arm(spec, make_pipeline(spec.pipeline, spec.replicate))
