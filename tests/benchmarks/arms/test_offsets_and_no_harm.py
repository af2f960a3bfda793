"""Arms with output offsets, and arms whose proposals need evidence."""

from dataclasses import replace

import pytest

from benchmarks.arms.contract import sees
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import BiasSettings
from benchmarks.rows.on_outputs import SHORT
from metricopt.on_outputs.no_harm import RESERVED
from tests.benchmarks.arms.arm_cases import METRICOPT, assert_values, record_of
from tests.benchmarks.problems.pipeline_cases import method_spec, tabular_unit

ROWS = 2


@pytest.mark.parametrize("name", ["cma-es", "metricopt"])
def test_a_proposal_may_be_held_against_the_untouched_network(name):
    queries, settings = (80, METRICOPT) if name == "metricopt" else (20, {})
    spec = method_spec(name, queries + RESERVED, settings=settings)
    held = replace(spec, arm=replace(spec.arm, kind="no-harm"))
    record = record_of(held)
    assert record.queries <= queries + RESERVED
    assert 0 <= record.notes["untouched"] <= 1
    own = ROWS * (record.queries - record.shared_queries)
    assert sum(record.queried.values()) == own + record.shared_queries
    assert sees(held.arm) == "outputs and labels"


def test_output_offsets_may_stand_beside_the_adapter():
    pipeline = tabular_unit(adapter=BiasSettings(offsets=True))
    assert make_pipeline(pipeline, 1).adapter.size == BiasSettings().size + 1
    spec = method_spec("metricopt-outputs", 16, settings=SHORT, pipeline=pipeline)
    record = record_of(spec)
    assert_values(record.values("test"), ROWS)
    assert any(note.startswith("moved") for note in record.notes)


def test_settings_that_joined_later_leave_specs_as_they_were():
    without = tabular_unit()
    assert "offsets" not in without.settings["adapter"]
    offered = tabular_unit(adapter=BiasSettings(offsets=True))
    assert offered.settings["adapter"]["offsets"] is True
