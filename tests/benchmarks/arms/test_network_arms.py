"""Arms that train the whole network."""

from dataclasses import replace

import pytest

from benchmarks.arms.contract import run_arm
from benchmarks.execution.runner import judge
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import Arm
from metricopt.errors import BudgetExceededError, ConfigError
from tests.benchmarks.arms.arm_cases import assert_values, record_of
from tests.benchmarks.problems.pipeline_cases import make_spec, method_spec

SCHEDULE = {"epochs": 1, "batch_size": 64}
NETWORKS = {
    "surrogate-loss": Arm(
        "network",
        "surrogate-loss",
        settings={"loss": "lovasz-softmax", "pretrain_epochs": 1},
        schedule=SCHEDULE,
    ),
    "learned-surrogate": Arm("network", "learned-surrogate", schedule=SCHEDULE),
    "cost-sensitive": Arm(
        "network", "cost-sensitive", schedule=SCHEDULE, from_theta=True
    ),
}


@pytest.mark.parametrize("row", NETWORKS)
def test_network_methods(row):
    record = record_of(make_spec(NETWORKS[row]))
    assert_values(record.values("observe"), 1)
    assert_values(record.values("test"), 1)
    assert record.gradient_steps > 0
    assert record.trace == ()
    assert sum(record.queried.values()) == record.queries
    # A loss is no query; the others ask the metric.
    assert (record.queries == 0) == (row == "surrogate-loss")


def test_a_network_method_does_not_depend_on_what_ran_before():
    spec = make_spec(NETWORKS["cost-sensitive"])
    alone = record_of(spec)
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    # The pipeline now has an adapter, and so a frozen form of theta.
    run_arm(method_spec("random-search", 4), pipeline)
    chosen = run_arm(spec, pipeline)
    assert RunRecord(spec, "done", **judge(chosen, spec, pipeline)) == alone


def test_settings_and_schedule_are_checked():
    arm = NETWORKS["surrogate-loss"]
    pipeline = make_pipeline(make_spec(arm).pipeline, 1)
    wrong = replace(arm, settings={"lost": "hinge"})
    with pytest.raises(ConfigError, match="SurrogateLoss has no setting lost; known: "):
        run_arm(make_spec(wrong), pipeline)
    wrong = replace(arm, schedule={"epoch": 1})
    with pytest.raises(ConfigError, match="MLPBackbone has no setting epoch; known: "):
        run_arm(make_spec(wrong), pipeline)


def test_a_budget_limits_the_queries():
    spec = make_spec(NETWORKS["cost-sensitive"], queries=3)
    with pytest.raises(BudgetExceededError, match="exceed the limit of 3"):
        run_arm(spec, make_pipeline(spec.pipeline, spec.replicate))
