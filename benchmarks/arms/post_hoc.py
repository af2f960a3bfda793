"""Arms that move the decision of the untouched network, without training."""

from dataclasses import replace

from torch import Tensor

from baselines.post_hoc.class_offsets import OffsetSearch, tune_offsets
from baselines.post_hoc.threshold_shift import tune_threshold
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.pipelines.choices import Chosen, Point, Shifted
from benchmarks.pipelines.contract import Pipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ShapeError
from metricopt.metrics.base import Metric


def run_threshold_shift(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Shift the threshold of a binary problem to where the metric is best."""
    validation = pipeline.validation(metric)
    found = tune_threshold(_class_outputs(spec, pipeline), validation)
    return Chosen(
        Shifted(found.shift),
        queries=found.queries,
        evaluations=dict(validation.meter.made),
        notes={"threshold": found.threshold},
    )


def run_class_offsets(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Shift the log-probability of every class to where the metric is best."""
    validation = pipeline.validation(metric)
    search = changed(OffsetSearch(), spec.arm.settings)
    found = tune_offsets(_class_outputs(spec, pipeline), validation, search=search)
    points = tuple(
        Point(
            0,
            each.queries,
            (each.value,),
            Shifted(replace(found, offsets=each.offsets).shift),
        )
        for each in found.trace
    )
    offsets = [round(offset, 3) for offset in found.offsets.tolist()]
    return Chosen(
        Shifted(found.shift),
        queries=found.queries,
        evaluations=dict(validation.meter.made),
        points=points,
        notes={"offsets": offsets},
    )


def _class_outputs(spec: RunSpec, pipeline: Pipeline) -> Tensor:
    outputs = pipeline.outputs()
    if not isinstance(outputs, Tensor):
        raise ShapeError(
            f"{spec.arm.kind} needs class outputs in one tensor, got a tuple of "
            f"{len(outputs)} tensors from the pipeline {spec.pipeline.name}"
        )
    return outputs


ARMS.register("threshold-shift")(ArmKind(run_threshold_shift))
ARMS.register("class-offsets")(ArmKind(run_class_offsets))
