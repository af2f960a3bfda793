"""Arms that cheat, and how each is caught."""

import re
from dataclasses import replace

import pytest

from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.execution.runner import execute
from benchmarks.problems.choices import Chosen, Shifted
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.environment import environment
from benchmarks.runs.spec import Arm
from benchmarks.runs.store import RunStore
from tests.extensions.test_fairness import SPEC


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def pipeline():
    return make_pipeline(SPEC.pipeline, SPEC.replicate)


def query_thrice(reported, counted):
    """Return an arm of its own that queries three times and reports something else."""

    def run(spec, pipeline, metric):
        validation = pipeline.validation(metric)
        outputs = pipeline.outputs()
        validation.values(outputs.expand(3, -1, -1))
        made = {"observe": counted} if counted else {}
        return Chosen(Shifted(lambda same: same), queries=reported, evaluations=made)

    return ArmKind(run)


@pytest.mark.parametrize(
    ("reported", "counted", "message"),
    [
        (3, 3, ""),
        (1, 1, "evaluated the metric 3 times and was charged with 1"),
        (1, 3, "reports 1 metric queries .* and 3 were counted"),
        (0, 0, "evaluated the metric 3 times and was charged with 0"),
    ],
)
def test_an_arm_of_its_own_is_audited(
    tmp_path, pipeline, monkeypatch, reported, counted, message
):
    list(ARMS)  # filled before anything is added
    monkeypatch.setitem(ARMS._units, "own", query_thrice(reported, counted))
    spec = replace(SPEC, arm=Arm("own"), meta_tests=1)
    record = execute(spec, pipeline, RunStore(tmp_path / "runs"), environment())
    assert record.status == ("failed" if message else "done")
    assert re.search(message, record.message or "")
