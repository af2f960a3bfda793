"""One run and its record, done, diverged or failed."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks.execution.runner import execute, judge, run_all
from benchmarks.problems.choices import Adapted, Chosen, Point
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import TabularPipeline
from benchmarks.runs.environment import environment
from benchmarks.runs.spec import Arm, Unit
from benchmarks.runs.store import RunStore
from metricopt.errors import MetricError
from metricopt.metrics.base import WrappedMetric
from tests.benchmarks.problems.pipeline_cases import make_spec, method_spec

ROWS = 2


pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def run(spec, store):
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    return execute(spec, pipeline, store, environment())


def test_done_runs_are_recorded(store):
    spec = method_spec("random-search", 20)
    record = run(spec, store)
    assert record.finished and store.get(spec) == record
    assert (record.queries, len(record.values("test"))) == (20, ROWS)
    assert record.queried == {"observe": 20 * ROWS}
    assert record.data["variant"] == "breast_cancer"
    assert record.environment["torch"] == torch.__version__.split("+")[0]
    assert set(record.seeds) == {"split", "theta", "adapter"}
    assert record.seconds["total"] >= 0


def test_a_result_is_judged_by_every_metric_of_its_spec(store):
    also = (Unit("mcr"), Unit("jaccard-legacy"))
    spec = method_spec("random-search", 8, also=also)
    record = run(spec, store)
    labels = {"f1", "mcr", "jaccard-legacy"}
    assert set(record.test) == set(record.observe) == labels
    for point in record.trace:
        # The way was observed by the metric of the run alone.
        assert set(point.observe) == {"f1"} and set(point.test) == labels
    # Being judged by more costs nothing and changes nothing.
    alone = run(replace(spec, also=()), store)
    assert (record.queries, record.queried) == (alone.queries, alone.queried)
    assert record.test["f1"] == alone.test["f1"]


def test_points_are_judged_with_the_result_and_keep_their_order():
    spec = method_spec("any", also=(Unit("mcr"),))
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    phi = [torch.full((ROWS, 16), value) for value in (0.0, 0.5, 1.0)]
    points = (
        Point(0, 0, None, Adapted(phi[0])),
        Point(5, 3, (0.25, 1 / 3), Adapted(phi[1])),
    )
    chosen = Chosen(Adapted(phi[2]), queries=4, points=points, notes={"a": 1.0})
    fields = judge(chosen, spec, pipeline)
    metrics = pipeline.metrics(spec.metrics)
    expected = [
        {name: [round(v, 6) for v in values.tolist()] for name, values in each.items()}
        for each in pipeline.evaluate([Adapted(part) for part in phi], "test", metrics)
    ]
    first, second = fields["trace"]
    assert (first.step, first.queries, first.observe) == (0, 0, {})
    assert (second.step, second.queries) == (5, 3)
    assert second.observe == {"f1": [0.25, 0.333333]}
    assert [first.test, second.test, fields["test"]] == expected
    assert (fields["queries"], fields["notes"]) == (4, {"a": 1.0})


def test_a_diverging_run_is_recorded_as_such(store):
    arm = Arm(
        "network",
        "surrogate-loss",
        settings={"loss": "lovasz-softmax", "pretrain_epochs": 0},
        schedule={"learning_rate": 1e30},
    )
    spec = make_spec(arm)
    record = run(spec, store)
    assert record.status == "diverged", record.message
    assert "loss" in record.message
    assert not record.finished and record.values("test") == []
    assert (record.test, record.observe, record.trace) == ({}, {}, ())
    assert (record.queries, record.queried) == (0, {})
    # What is known without a result is there all the same.
    assert record.data["variant"] == "breast_cancer"
    assert set(record.seeds) == {"split", "theta", "adapter"}
    content = json.loads(store.path(spec).read_text())
    assert content["status"] == "diverged" and store.get(spec) == record
    # It is not run again.
    assert run_all([spec], store, workers=1) == []


class Broken(WrappedMetric):
    """A metric that fails whenever it is asked."""

    def _value(self, outputs, targets):
        raise MetricError("metric f1 returned nan, expected a number in [0, 1]")

    def _values(self, outputs, targets):
        return self._value(outputs, targets)


def test_a_failing_metric_is_recorded_as_such(store, monkeypatch):
    metric = TabularPipeline.metric
    monkeypatch.setattr(
        TabularPipeline, "metric", lambda self, unit: Broken(metric(self, unit))
    )
    spec = method_spec("random-search", 20, row="broken")
    record = run(spec, store)
    assert record.status == "failed"
    assert record.message == "metric f1 returned nan, expected a number in [0, 1]"
    assert store.get(spec) == record


def test_a_budget_too_small_is_recorded_as_failed(store):
    record = run(method_spec("metricopt", 5), store)
    assert record.status == "failed"
    assert record.message.startswith("a budget of 5 queries, ")
