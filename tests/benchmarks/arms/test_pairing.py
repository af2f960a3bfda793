"""Runs of one replicate that are compared start at the same phi."""

import functools

import pytest

from tests.benchmarks.arms.arm_cases import METRICOPT, RECIPE, record_of
from tests.benchmarks.problems.pipeline_cases import method_spec

ROWS = {
    "loss-only": {},
    "loss-only-dense": {},
    "metricopt": METRICOPT,
    "metricopt-adam": METRICOPT | {"optimizer": "adam"},
    "metricopt-literal": {"recipe": RECIPE, "steps": [0.1, 0.3]},
}


@functools.cache
def start_of(row):
    """What the meta-tests of a row are worth on test before their first step."""
    name = row.removesuffix("-adam")
    record = record_of(method_spec(name, 80, settings=ROWS[row], rows=5))
    assert record.trace[0].step == 0
    return record.trace[0].test["f1"]


@pytest.mark.parametrize("row", ROWS)
def test_the_meta_tests_of_all_rows_start_alike(row):
    assert start_of(row) == start_of("loss-only")
    assert len(set(start_of(row))) > 1
