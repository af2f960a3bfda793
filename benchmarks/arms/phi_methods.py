"""Arms that choose phi: methods on the observe split, and oracles on test itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.arms.contract import ARMS, ArmKind, check_budget
from benchmarks.arms.diagnosis import diagnose
from benchmarks.arms.preparations import (
    budget_of,
    learned,
    make_method,
    prepare,
    sees_of_method,
    trains_value_function,
)
from benchmarks.problems.choices import Adapted, Chosen, Point, together
from benchmarks.problems.contract import Pipeline, make_pipeline
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.result import FinetuneResult
from metricopt.metrics.base import Metric, from_cost


def run_method(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Choose phi on the observe split, with every value function of the run.

    Raises:
        ConfigError: if the method does not suit the tasks of the pipeline, or has no
            value function where several are asked for.
        FairnessError: if one result cost more than its budget.
    """
    count = spec.value_functions
    if count > 1 and not trains_value_function(spec):
        raise ConfigError(
            f"{spec.arm.name} trains nothing that its runs share, so one run cannot "
            f"have {count} value functions"
        )
    parts = [_with_one(number, spec, pipeline, metric) for number in range(count)]
    return together(parts) if count > 1 else parts[0]


def _with_one(number: int, spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Choose phi with one value function, if the method has any."""
    task, method = pipeline.task(metric), make_method(spec.arm)
    if spec.arm.source is not None:
        known = learned(spec, make_pipeline(spec.arm.source, pipeline.replicate))
        method = method.knowing(known, pipeline.adapter_settings)
    if not method.suits(task):
        raise ConfigError(
            f"{spec.arm.name} does not suit tasks of the pipeline {spec.pipeline.name}"
        )
    prepared = prepare(method, spec, pipeline, number)
    trained = method.value_function(prepared.preparation)
    notes: dict[str, Any] = {}
    if spec.diagnose and trained is not None:
        notes = diagnose(trained, pipeline, spec)
    task.meter.limit = spec.budget.queries * spec.meta_tests
    result = method.run(
        task,
        budget_of(spec),
        _generator(spec, pipeline),
        rows=spec.meta_tests,
        prepared=prepared.preparation,
    )
    check_budget(spec.arm.name, spent=result.queries, allowed=spec.budget.queries)
    chosen = _chosen(result, metric, task.meter.made)
    return replace(
        chosen,
        prepared=prepared.made,
        notes=dict(chosen.notes) | notes,
        seconds=dict(prepared.seconds),
    )


def run_oracle(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Search on the test split: what the adapter can express, not what one can find."""
    task = pipeline.oracle_task(metric)
    result = make_method(spec.arm).run(
        task, budget_of(spec), _generator(spec, pipeline), rows=spec.meta_tests
    )
    return _chosen(result, metric, {"test": task.queries})


def _generator(spec: RunSpec, pipeline: Pipeline) -> torch.Generator:
    return pipeline.seeds.generator("fine-tuning", spec.metric.label)


def _chosen(
    result: FinetuneResult, metric: Metric, evaluations: Mapping[str, int]
) -> Chosen:
    points = tuple(
        Point(
            point.step, point.queries, _native(point.cost, metric), Adapted(point.phi)
        )
        for point in result.checkpoints
    )
    return Chosen(
        Adapted(result.phi),
        queries=result.queries,
        shared_queries=result.shared_queries,
        gradient_steps=result.gradient_steps,
        evaluations=dict(evaluations),
        points=points,
        notes=result.notes,
    )


def _native(cost: Tensor, metric: Metric) -> tuple[float, ...] | None:
    """Return observed costs [R] in native units, None where none was observed."""
    if bool(torch.isnan(cost).all()):
        return None
    return tuple(from_cost(metric, cost).tolist())


METHOD = ArmKind(run_method, trains_value_function, sees=sees_of_method)
ARMS.register("method")(METHOD)
ARMS.register("no-harm")(METHOD)
ARMS.register("oracle")(ArmKind(run_oracle, reads_test=True, sees=lambda arm: "test"))
