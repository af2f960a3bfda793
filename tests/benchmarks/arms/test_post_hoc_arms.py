"""Arms that move the decision of the untouched network."""

import math

import pytest

from benchmarks.arms.contract import sees
from benchmarks.problems.tabular.pipeline import TabularPipeline
from benchmarks.runs.spec import Arm
from metricopt.errors import ConfigError
from tests.benchmarks.arms.arm_cases import assert_values, record_of
from tests.benchmarks.problems.pipeline_cases import make_spec, method_spec


def test_threshold_shift_is_the_best_of_all_thresholds():
    record = record_of(make_spec(Arm("threshold-shift")))
    untouched = record_of(method_spec("untouched"))
    assert_values(record.values("observe"), 1)
    assert_values(record.values("test"), 1)
    # One query more than there are examples to observe.
    assert record.queries <= 57 + 1
    assert record.queried == {"observe": record.queries}
    assert record.values("observe")[0] >= untouched.values("observe")[0]
    assert math.isfinite(record.notes["threshold"])


CHANGED = (
    *("threshold-shift", "threshold-grid", "cma-offsets", "optuna-offsets"),
    *("cw-plugin", "fw-eg"),
)


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.parametrize("metric", ["f1", "mcr"])
def test_a_budget_is_kept_and_the_curve_ends_at_the_result(kind, metric):
    record = record_of(make_spec(Arm(kind), queries=13, metric=metric))
    assert_values(record.values("observe"), 1)
    assert_values(record.values("test"), 1)
    assert record.queried == {"observe": record.queries}
    assert 10 <= record.queries <= 13
    # A list of thresholds has no result before its end.
    if not kind.startswith("threshold"):
        last = record.trace[-1]
        assert last.observe[metric] == record.values("observe")
        assert last.test[metric] == record.values("test")
        values = [point.observe[metric][0] for point in record.trace]
        assert values == sorted(values, reverse=metric == "mcr")


def test_a_prior_correction_queries_nothing_and_knows_the_sampling():
    record = record_of(make_spec(Arm("prior-correction"), metric="mcr"))
    assert (record.queries, record.queried) == (0, {})
    assert not record.notes["trivial"]
    untouched = record_of(method_spec("untouched", metric="mcr"))
    assert record.values("observe") != untouched.values("observe")[:1]


def test_an_arm_without_training_shares_cannot_correct_them(monkeypatch):
    monkeypatch.setattr(TabularPipeline, "training_shares", None)
    with pytest.raises(ConfigError, match="does not say which class shares"):
        record_of(make_spec(Arm("prior-correction")))
    # Where it is only a help, its absence is no failure.
    assert record_of(make_spec(Arm("fw-eg"), queries=9)).queries == 7


def test_probes_are_edited_predictions():
    assert sees(Arm("fw-eg")) == "edited predictions"
    assert sees(Arm("cma-offsets")) == sees(Arm("prior-correction"))
