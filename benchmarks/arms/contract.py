"""The contract of an arm, one registered way to fill a row, and the audit of its run.

The audit compares metric evaluations made with those counted and reported.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

from torch import Tensor

from benchmarks.problems.choices import Chosen, charged
from benchmarks.problems.contract import Pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.runs.spec import Arm, RunSpec
from metricopt.errors import ConfigError, MetricOptError
from metricopt.methods.contract import Sees
from metricopt.metrics.base import Metric, WrappedMetric
from metricopt.metrics.constrained import over_each
from metricopt.reading.outputs import Outputs, Targets
from metricopt.registry import Registry


class FairnessError(MetricOptError):
    """A method made more metric queries than charged or allowed, or misreports them."""


class AuditedMetric(WrappedMetric):
    """A metric that counts its own evaluations, wherever they come from.

    Args:
        metric: what is evaluated.

    Attributes:
        evaluations: rows of outputs evaluated so far.
    """

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric)
        self.evaluations = 0

    def __deepcopy__(self, memo: object) -> "AuditedMetric":
        """Return itself: what a copy evaluates is evaluated here."""
        return self

    def _value(self, outputs: Outputs, targets: Targets) -> float:
        self.evaluations += 1
        return self.metric.value(outputs, targets)

    def _values(self, outputs: Outputs, targets: Targets) -> Tensor:
        values = self.metric.values(outputs, targets)
        self.evaluations += len(values)
        return values


def audited(metric: Metric) -> tuple[Metric, list[AuditedMetric]]:
    """Return a metric that counts evaluations, and what counts them.

    The metrics of one with bounds are counted apart: a query evaluates each of them.
    """
    audits: list[AuditedMetric] = []

    def audit(one: Metric) -> Metric:
        audits.append(AuditedMetric(one))
        return audits[-1]

    return over_each(metric, audit), audits


def evaluations(audits: Sequence[AuditedMetric]) -> int:
    """Return how often a metric was evaluated, or the busiest of those with bounds."""
    return max(audit.evaluations for audit in audits)


def check_counts(
    name: str,
    *,
    evaluated: int,
    counted: int,
    reported: int,
    points: Sequence[int] = (),
    final: int | None = None,
) -> None:
    """Check that what a method made, was charged with and reports is the same.

    Args:
        name: name of the method.
        evaluated: metric evaluations that were made.
        counted: queries that were charged.
        reported: queries of all its rows, by its own account.
        points: queries of every point on the way.
        final: queries of the result; None if there is none yet.

    Raises:
        FairnessError: if evaluations bypassed the counter, the report differs, or the
            points do not lead up to the result.
    """
    if evaluated > counted:
        raise FairnessError(
            f"{name} evaluated the metric {evaluated} times and was charged with "
            f"{counted} queries: the others bypassed the counter"
        )
    if reported != counted:
        raise FairnessError(
            f"{name} reports {reported} metric queries for all its rows, and {counted} "
            "were counted"
        )
    if final is None:
        return
    if any(before > after for before, after in pairwise([0, *points, final])):
        raise FairnessError(
            f"the points on the way of {name} must have queries that go from 0 up to "
            f"the {final} of its result, got {', '.join(map(str, points))}"
        )


def check_budget(name: str, *, spent: int, allowed: int) -> None:
    """Check that one result cost no more than its budget.

    Raises:
        FairnessError: if it did.
    """
    if spent > allowed:
        raise FairnessError(
            f"{name} may spend {allowed} metric queries on one result, and spent "
            f"{spent}"
        )


@dataclass(frozen=True)
class ArmKind:
    """How rows of one kind are run.

    Attributes:
        run: makes the choice that the runner judges. It queries the metric it is
            given, which is audited, and never sees the test split.
        prepares: identity of something expensive that the run of a spec first makes,
            and shares with other runs on its pipeline; empty if it makes none.
        reads_test: whether it may query the test split; for oracles alone.
        sees: what an arm of this kind knows of its problem; all get the pipeline, which
            shows outputs and labels of the observe split.
        on: kind of pipeline it runs on.
        imports: packages that take seconds to import, which are of no run's time.
        needs: what has to exist before the run of a spec, beside the network of its
            pipeline. If the settings do not go together, a ConfigError tells it.
    """

    run: Callable[[RunSpec, Any, Metric], Chosen]
    prepares: Callable[[RunSpec], str] = lambda spec: ""
    reads_test: bool = False
    sees: Callable[[Arm], Sees] = lambda arm: "outputs and labels"
    on: type[Pipeline] = NetworkPipeline
    imports: tuple[str, ...] = ()
    needs: Callable[[RunSpec], Sequence[Prerequisite]] = lambda spec: ()


ARMS: Registry[ArmKind] = Registry("kind of arm", "benchmarks.arms")


def sees(arm: Arm) -> Sees:
    """Return what an arm knows of its problem besides the metric queries it makes.

    Raises:
        ConfigError: if there is no such kind of arm, method or setting.
    """
    return ARMS.get(arm.kind).sees(arm)


def import_for(arm: Arm) -> None:
    """Import the packages that an arm alone needs, before it is timed."""
    if arm.kind in ARMS:
        for name in ARMS.get(arm.kind).imports:
            import_module(name)


def run_arm(spec: RunSpec, pipeline: Pipeline) -> Chosen:
    """Run what a spec names on its pipeline.

    Raises:
        ConfigError: if the spec names an unknown kind of arm, method or metric, or a
            pipeline of another kind than its arm runs on.
        SealedError: if the arm reads the test split, and is no oracle.
        FairnessError: if what it spent is not what it reports.
    """
    kind = ARMS.get(spec.arm.kind)
    if not isinstance(pipeline, kind.on):
        raise ConfigError(
            f"the arm {spec.arm.kind!r} runs on a {kind.on.__name__}, got the pipeline "
            f"{spec.pipeline.name!r}, a {type(pipeline).__name__}"
        )
    metric, audits = audited(pipeline.metric(spec.metric))
    with nullcontext() if kind.reads_test else pipeline.sealed():
        chosen = kind.run(spec, pipeline, metric)
    check_counts(
        spec.arm.name or spec.arm.kind,
        evaluated=evaluations(audits) + sum(chosen.prepared.values()),
        counted=sum(chosen.queried.values()),
        reported=chosen.reported,
        points=[point.queries for point in chosen.points],
        final=chosen.queries,
    )
    return charged(chosen, pipeline.network_cost)
