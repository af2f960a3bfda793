"""Detection pipelines of the smoke tier, on drawn cells."""

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.detection.pipeline import DetectionPipeline
from benchmarks.tables.registry import find_experiment

EXPERIMENT = find_experiment("table6")


def spec_of(row="untouched", block="cross-entropy", replicate=0):
    found = EXPERIMENT.specs("smoke", replicate + 1, True)
    return next(
        spec
        for spec in found
        if (spec.row, spec.block, spec.replicate) == (row, block, replicate)
    )


def pipeline_of(row="untouched", block="cross-entropy", replicate=0):
    found = make_pipeline(spec_of(row, block, replicate).pipeline, replicate)
    assert isinstance(found, DetectionPipeline)
    return found
