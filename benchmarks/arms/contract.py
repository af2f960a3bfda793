"""The contract of an arm: one registered way to fill a row of a table."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from benchmarks.arms.audit import AuditedMetric, check_counts
from benchmarks.problems.choices import Chosen, charged
from benchmarks.problems.contract import Pipeline
from benchmarks.runs.spec import Arm, RunSpec
from metricopt.methods.contract import Sees
from metricopt.metrics.base import Metric
from metricopt.registry import Registry


def _prepares_nothing(spec: RunSpec) -> bool:
    return False


def _sees_outputs_and_labels(arm: Arm) -> Sees:
    # What the pipeline, which every arm gets, shows of the observe split.
    return "outputs and labels"


@dataclass(frozen=True)
class ArmKind:
    """How rows of one kind are run.

    Attributes:
        run: makes the choice that the runner judges. It queries the metric it is
            given, which is audited, and never sees the test split.
        prepares: whether the run of a spec first makes something expensive that it
            shares with other runs; such runs get a worker of their own.
        reads_test: whether it may query the test split; for oracles alone.
        sees: what an arm of this kind knows of its problem.
    """

    run: Callable[[RunSpec, Pipeline, Metric], Chosen]
    prepares: Callable[[RunSpec], bool] = _prepares_nothing
    reads_test: bool = False
    sees: Callable[[Arm], Sees] = _sees_outputs_and_labels


ARMS: Registry[ArmKind] = Registry("kind of arm", "benchmarks.arms")


def sees(arm: Arm) -> Sees:
    """Return what an arm knows of its problem besides the metric queries it makes.

    Raises:
        ConfigError: if there is no such kind of arm, method or setting.
    """
    return ARMS.get(arm.kind).sees(arm)


def run_arm(spec: RunSpec, pipeline: Pipeline) -> Chosen:
    """Run what a spec names on its pipeline.

    Raises:
        ConfigError: if the spec names an unknown kind of arm, method or metric.
        SealedError: if the arm reads the test split, and is no oracle.
        FairnessError: if what it spent is not what it reports.
    """
    kind = ARMS.get(spec.arm.kind)
    metric = AuditedMetric(pipeline.metric(spec.metric))
    with nullcontext() if kind.reads_test else pipeline.sealed():
        chosen = kind.run(spec, pipeline, metric)
    check_counts(
        spec.arm.name or spec.arm.kind,
        evaluated=metric.evaluations + sum(chosen.prepared.values()),
        counted=sum(chosen.queried.values()),
        reported=chosen.reported,
        points=[point.queries for point in chosen.points],
        final=chosen.queries,
    )
    return charged(chosen, pipeline.network_cost)
