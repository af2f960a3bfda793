"""Small pipelines for tests, and the specs that name them."""

from dataclasses import replace

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import (
    BinaryProblem,
    MLPBackbone,
    TabularSettings,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm, RunSpec, Spending, Unit
from benchmarks.tables.registry import find_experiment

CANCER = BinaryProblem("breast_cancer", "full", (0,))
DIGIT = BinaryProblem("digits", "full", (8,))
STEPS = 50
SETTINGS = TabularSettings(
    CANCER, "balanced", MLPBackbone(epochs=2, batch_size=64), revision=0
)


def tabular(**changes):
    """Return the settings of a briefly trained MLP on 569 examples."""
    return replace(SETTINGS, **changes)


def tabular_unit(**changes):
    return Unit("tabular", encode(tabular(**changes)))


def make_spec(arm, *, queries=0, metric="f1", replicate=1, **fields):
    """Return the spec of a short run on 569 examples."""
    places = {
        "experiment": "table3",
        "tier": "smoke",
        "block": "balanced",
        "row": "row",
        "column": f"cancer/{metric}",
        "pipeline": tabular_unit(),
    }
    return RunSpec(
        **(places | fields),
        replicate=replicate,
        metric=Unit(metric),
        arm=arm,
        budget=Spending(queries, STEPS),
    )


def method_spec(name, queries=0, *, settings=None, rows=2, **fields):
    """Return the spec of a short run of a method."""
    arm = Arm("method", name, settings or {})
    return make_spec(arm, queries=queries, meta_tests=rows, **fields)


def smoke_spec(experiment, row, replicate=0, **places):
    """Return the first spec of a row of the smoke tier, at some block or column."""
    found = find_experiment(experiment).specs("smoke", replicate + 1, True)
    wanted = {"row": row, "replicate": replicate} | places
    return next(
        spec
        for spec in found
        if all(getattr(spec, name) == value for name, value in wanted.items())
    )


def smoke_pipeline(experiment, row, replicate=0, **places):
    spec = smoke_spec(experiment, row, replicate, **places)
    return make_pipeline(spec.pipeline, replicate)


def changed(spec, part, **settings):
    """Return a spec with other settings of a part of its pipeline."""
    own = spec.pipeline.settings
    unit = replace(spec.pipeline, settings=own | {part: own[part] | settings})
    return replace(spec, pipeline=unit)
