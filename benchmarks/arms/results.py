"""What the run of a method on phi is given, and what the suite makes of its result."""

from collections.abc import Mapping

import torch
from torch import Tensor

from benchmarks.problems.choices import Adapted, Chosen, Point
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.spec import RunSpec
from metricopt.methods.result import Budget, FinetuneResult
from metricopt.metrics.base import Metric, from_cost


def budget_of(spec: RunSpec) -> Budget:
    """Return what one result of a run may cost."""
    return Budget(spec.budget.queries, spec.budget.gradient_steps)


def fine_tuning_generator(spec: RunSpec, pipeline: NetworkPipeline) -> torch.Generator:
    """Return the source of starts and mini-batches, the same for all rows."""
    return pipeline.seeds.generator("fine-tuning", spec.metric.label)


def chosen_of(
    result: FinetuneResult, metric: Metric, evaluations: Mapping[str, int]
) -> Chosen:
    """Return what a method chose.

    Args:
        result: of its run.
        metric: that it queried.
        evaluations: metric queries that were counted, by split.
    """
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
