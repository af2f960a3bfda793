"""Arms that train the whole network, or hand it over as it was trained."""

import torch

from baselines.network_methods.contract import NETWORK_METHODS
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.problems.choices import Adapted, Chosen, Trained
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import RunSpec
from metricopt.metrics.base import Metric


def run_network(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Train a network by a registered method.

    Raises:
        ConfigError: if there is no such method or setting.
    """
    method = changed(NETWORK_METHODS.get(spec.arm.name)(), spec.arm.settings)
    # A spec of 0 queries leaves the number to the method.
    validation = pipeline.validation(metric, spec.budget.queries or None)
    result = pipeline.train(
        method,
        validation,
        generator=pipeline.seeds.generator("network", spec.row, spec.metric.label),
        changes=spec.arm.schedule,
        from_theta=spec.arm.from_theta,
    )
    return Chosen(
        Trained(result.predict),
        queries=result.queries,
        gradient_steps=result.gradient_steps,
        evaluations=dict(validation.meter.made),
        notes=result.notes,
    )


ARMS.register("network")(ArmKind(run_network))


def run_theta(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Return phi = 0; a run is charged with the training of its network anyway."""
    size = pipeline.task(metric).size
    return Chosen(Adapted(torch.zeros(1, size)), notes=pipeline.network_cost.notes)


ARMS.register("theta")(ArmKind(run_theta))
