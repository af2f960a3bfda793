"""Retrieval pipelines of the smoke tier, on drawn shapes."""

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.retrieval.pipeline import RetrievalPipeline
from benchmarks.tables.registry import find_experiment


def spec_of(row="untouched", block="fastap", replicate=0):
    found = find_experiment("table5").specs("smoke", replicate + 1, True)
    return next(
        spec
        for spec in found
        if (spec.row, spec.block, spec.replicate) == (row, block, replicate)
    )


def pipeline_of(row="untouched", block="fastap", replicate=0):
    found = make_pipeline(spec_of(row, block, replicate).pipeline, replicate)
    assert isinstance(found, RetrievalPipeline)
    return found
