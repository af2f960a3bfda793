"""An arm run and judged as the runner does, without a store."""

from benchmarks.arms.contract import run_arm
from benchmarks.execution.runner import judge
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.record import RunRecord
from tests.benchmarks.problems.pipeline_cases import method_spec

RECIPE = {"tasks": 16, "block": 8}
METRICOPT = {"recipe": RECIPE, "steps": [0.4, 0.8]}


def metricopt_spec(**fields):
    return method_spec("metricopt", 80, settings=METRICOPT, **fields)


def record_of(spec):
    """Return the record of a run on a pipeline of its own, without its seconds."""
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    chosen = run_arm(spec, pipeline)
    return RunRecord(spec, "done", **judge(chosen, spec, pipeline))


def assert_values(values, count):
    assert len(values) == count
    assert all(0.0 <= value <= 1.0 for value in values)
    assert all(value == round(value, 6) for value in values)
