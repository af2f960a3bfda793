"""Small pipelines for tests, and the specs that name them."""

from dataclasses import replace

from benchmarks.problems.tabular.settings import (
    BinaryProblem,
    MLPBackbone,
    TabularSettings,
)
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm, RunSpec, Spending, Unit

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
