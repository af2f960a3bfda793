"""Methods and arms that cheat, and how each is caught."""

import copy
import re
from dataclasses import dataclass, replace

import pytest
import torch

from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
)
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.execution.runner import execute
from benchmarks.problems.choices import Chosen, Shifted
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import (
    BinaryProblem,
    MLPBackbone,
    TabularSettings,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.environment import environment
from benchmarks.runs.spec import Arm, RunSpec, Spending, Unit
from benchmarks.runs.store import RunStore
from metricopt.methods.contract import METHODS, Method, Preparation
from metricopt.methods.result import Checkpoint, FinetuneResult
from metricopt.metrics.base import Metric

QUERIES, ROWS = 10, 2
SETTINGS = TabularSettings(
    BinaryProblem("breast_cancer", "full", (0,)),
    sampling="natural",
    backbone=MLPBackbone(epochs=1, batch_size=64),
    revision=0,
)
SPEC = RunSpec(
    "cheats",
    "smoke",
    "natural",
    "row",
    "cancer/f1",
    0,
    pipeline=Unit("tabular", encode(SETTINGS)),
    metric=Unit("f1"),
    arm=Arm("method", "honest"),
    budget=Spending(QUERIES, 5),
    meta_tests=ROWS,
)


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def pipeline():
    return make_pipeline(SPEC.pipeline, SPEC.replicate)


@pytest.fixture
def run(tmp_path, pipeline, monkeypatch):
    """Run a method under a name of its own and return its record."""

    def run(kind, unit, registry=METHODS, spec=SPEC):
        name = unit.__name__
        monkeypatch.setitem(registry._units, name, unit)
        spec = replace(spec, arm=Arm(kind, name))
        return execute(spec, pipeline, RunStore(tmp_path / "runs"), environment())

    list(METHODS), list(NETWORK_METHODS)  # filled before anything is added
    return run


def result(phi, queries, shared=0):
    return FinetuneResult(phi, queries, shared, 0, ())


class Honest(Method):
    """Spends three queries a row, and says so."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        phi = torch.randn(3 * rows, task.size, generator=generator)
        costs = task.observe(phi).view(3, rows)
        best = phi.view(3, rows, -1)[costs.argmin(0), torch.arange(rows)]
        return result(best, 3)


class UnderReporting(Honest):
    """Spends three queries a row, and owns up to one."""

    def run(self, *arguments, **named):
        return replace(super().run(*arguments, **named), queries=1)


class Uncounted(Honest):
    """Reaches for private parts, where no query is counted."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        found = super().run(task, budget, generator, rows=rows)
        task._observe(torch.zeros(7, task.size))
        return found


class Overspending(Honest):
    """Goes on after its budget."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        for _ in range(budget.queries + 1):
            task.observe(torch.zeros(rows, task.size))
        return super().run(task, budget, generator, rows=rows)


class Unlimited(Honest):
    """Lifts its own limit."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        task.meter.limit = None
        task.observe(torch.zeros(rows * budget.queries, task.size))
        found = super().run(task, budget, generator, rows=rows)
        return replace(found, queries=budget.queries + 3)


class Forgetful(Honest):
    """Forgets what its counter has counted."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        task.observe(torch.zeros(5, task.size))
        task.meter.made.clear()
        return super().run(task, budget, generator, rows=rows)


class Copying(Honest):
    """Queries a copy of its task."""

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        copy.deepcopy(task).observe(torch.zeros(5, task.size))
        return super().run(task, budget, generator, rows=rows)


class Flattering(Honest):
    """Draws its curve as if its result had cost one query."""

    def run(self, *arguments, **named):
        found = super().run(*arguments, **named)
        unknown = torch.full((ROWS,), torch.nan, dtype=torch.float64)
        points = [Checkpoint(0, queries, found.phi, unknown) for queries in (4, 1)]
        return replace(found, checkpoints=tuple(points))


class DearPreparation(Honest):
    """Prepares with queries that it does not report."""

    def preparation_key(self, budget):
        return "dear"

    def prepare(self, task, budget, generator, *, progress=None):
        task.observe(torch.zeros(4, task.size))
        return Preparation(queries=0)


def test_an_honest_method_passes(run):
    record = run("method", Honest)
    assert record.status == "done"
    assert (record.queries, record.queried) == (3, {"observe": 3 * ROWS})
    assert len(record.values("test")) == ROWS


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (UnderReporting, "reports 2 metric queries .* and 6 were counted"),
        (Uncounted, "evaluated the metric 13 times and was charged with 6"),
        (Overspending, "exceed the limit of 20"),
        (Unlimited, "may spend 10 metric queries on one result, and spent 13"),
        (Forgetful, "evaluated the metric 11 times and was charged with 6"),
        (Copying, "reports 6 metric queries .* and 11 were counted"),
        (Flattering, "queries that go from 0 up to the 3 of its result, got 4, 1"),
        (DearPreparation, "reports 0 metric queries .* and 4 were counted"),
    ],
)
def test_a_method_that_cheats_with_queries_fails(run, cheat, message):
    record = run("method", cheat)
    assert record.status == "failed"
    assert not record.test
    assert re.search(message, record.message)


def read_after_a_seal_of_its_own(pipeline):
    with pipeline.sealed():
        pass
    return pipeline.encoded("test")


@pytest.mark.parametrize(
    "reach",
    [
        lambda pipeline: pipeline.encoded("test"),
        lambda pipeline: pipeline.oracle_task(pipeline.metric(SPEC.metric)),
        lambda pipeline: pipeline.evaluate([], "test", {}),
        read_after_a_seal_of_its_own,
    ],
)
def test_a_method_that_reads_test_fails(run, pipeline, reach):
    class Peeking(Honest):
        def run(self, *arguments, **named):
            reach(pipeline)
            return super().run(*arguments, **named)

    record = run("method", Peeking)
    assert record.status == "failed"
    assert "the test split is read once, by the runner" in record.message
    assert run("method", Honest).status == "done"


def public_values(thing):
    names = [name for name in dir(thing) if not name.startswith("_")]
    return [getattr(thing, name) for name in names]


def test_a_task_shows_no_metric_no_labels_and_no_test(pipeline):
    task = pipeline.task(pipeline.metric(SPEC.metric))
    shown = public_values(task)
    assert not [value for value in shown if isinstance(value, Metric)]
    assert not [value for value in shown if isinstance(value, torch.Tensor)]
    test = pipeline.splits.test.targets
    assert not any(value is test or value is pipeline for value in shown)


def test_a_validation_shows_no_metric(pipeline):
    validation = pipeline.validation(pipeline.metric(SPEC.metric))
    assert not [v for v in public_values(validation) if isinstance(v, Metric)]


@dataclass(frozen=True, kw_only=True)
class HonestTraining(NetworkMethod):
    """Trains nothing, queries twice, and says so."""

    extra: int = 0
    reported: int = 2
    private: int = 0

    def _train(self, given):
        validation = given.validation
        outputs = torch.zeros(1, len(validation.observe), 1)
        for _ in range(2 + self.extra):
            validation.costs(outputs)
        for _ in range(self.private):
            validation._metric.values(outputs, validation.observe.targets)
        return NetworkResult(given.network.eval(), self.reported, gradient_steps=0)


@dataclass(frozen=True, kw_only=True)
class UnderReportingTraining(HonestTraining):
    extra: int = 3


@dataclass(frozen=True, kw_only=True)
class UncountedTraining(HonestTraining):
    private: int = 3


@dataclass(frozen=True, kw_only=True)
class OverspendingTraining(HonestTraining):
    extra: int = QUERIES


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (UnderReportingTraining, "reports 2 metric queries .* and 5 were counted"),
        (UncountedTraining, "evaluated the metric 5 times and was charged with 2"),
        (OverspendingTraining, "exceed the limit of 10"),
    ],
)
def test_a_network_method_that_cheats_fails(run, cheat, message):
    assert run("network", HonestTraining, NETWORK_METHODS).status == "done"
    record = run("network", cheat, NETWORK_METHODS)
    assert record.status == "failed"
    assert re.search(message, record.message)


def query_thrice(reported, counted):
    """Return an arm of its own that queries three times and reports something else."""

    def run(spec, pipeline, metric):
        validation = pipeline.validation(metric)
        outputs = pipeline.outputs()
        validation.values(outputs.expand(3, -1, -1))
        made = {"observe": counted} if counted else {}
        return Chosen(Shifted(lambda same: same), queries=reported, evaluations=made)

    return ArmKind(run)


@pytest.mark.parametrize(
    ("reported", "counted", "message"),
    [
        (3, 3, ""),
        (1, 1, "evaluated the metric 3 times and was charged with 1"),
        (1, 3, "reports 1 metric queries .* and 3 were counted"),
        (0, 0, "evaluated the metric 3 times and was charged with 0"),
    ],
)
def test_an_arm_of_its_own_is_audited(
    tmp_path, pipeline, monkeypatch, reported, counted, message
):
    list(ARMS)  # filled before anything is added
    monkeypatch.setitem(ARMS._units, "own", query_thrice(reported, counted))
    spec = replace(SPEC, arm=Arm("own"), meta_tests=1)
    record = execute(spec, pipeline, RunStore(tmp_path / "runs"), environment())
    assert record.status == ("failed" if message else "done")
    assert re.search(message, record.message or "")
