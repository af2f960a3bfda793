"""Image pipelines of the smoke tier, on digits."""

from dataclasses import replace

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.images.pipeline import ImagePipeline
from benchmarks.tables.registry import find_experiment


def spec_of(row, experiment="table1", column=None):
    found = [
        spec
        for spec in find_experiment(experiment).specs("smoke", 1, True)
        if spec.row == row
    ]
    return next(spec for spec in found if column in (None, spec.column))


def pipeline_of(row="cross-entropy", **more):
    spec = spec_of(row, **more)
    found = make_pipeline(spec.pipeline, 0)
    assert isinstance(found, ImagePipeline)
    return found


def changed(spec, part, **settings):
    """Return a spec with other settings of a part of its pipeline."""
    own = spec.pipeline.settings
    unit = replace(spec.pipeline, settings=own | {part: own[part] | settings})
    return replace(spec, pipeline=unit)
