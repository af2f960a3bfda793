"""Tables at a budget of queries, rows with a budget, and what runs cost."""

import math

import pytest

from benchmarks.report import tables
from benchmarks.report.cells import judge
from benchmarks.report.curves import at_budget
from benchmarks.report.sections.queries import EQUAL_QUERIES, equal_queries
from benchmarks.report.sections.time_page import time_table
from tests.benchmarks.report.report_cases import (
    ARMS,
    BALANCED,
    LAYOUT,
    MCR,
    TRACE,
    cell_of,
    cells_in,
    headings_in,
    make_arm,
    make_record,
)


def test_equal_queries_table():
    records = [
        make_record("shift", 0, [0.1], trace=TRACE, queries=151),
        make_record("shift", 1, [0.1], trace=TRACE, queries=151),
        make_record("metricopt-q50", 0, [0.16], queries=50),
        make_record("metricopt", 0, [0.15], queries=4800, trace=TRACE[1:]),
        make_record("loss-only", 0, [0.1], status="diverged"),
    ]
    heading, _, title, *tables = equal_queries(LAYOUT, records)
    assert (heading, title) == (EQUAL_QUERIES, "### Balanced, A9A MCR ↓")
    assert headings_in([None, None, *tables]) == ["method", "50 queries", "150 queries"]
    assert cells_in([None, None, *tables]) == [
        ["threshold shift", ".2200±.0000 / .2100", ".2200±.0000 / .2100"],
        ["MetricOpt", ".1600 / .1600", ".2200 / .2100"],
    ]
    assert at_budget(records, "metricopt", 50, LAYOUT.reading(MCR)) == [0.16]


def test_rows_with_a_budget_are_listed_but_not_tested():
    records = [*ARMS, *make_arm("metricopt-q50", [0.161, 0.179, 0.170], queries=50)]
    cell = cell_of(records, "metricopt-q50")
    assert cell.against_base.p_holm is None
    assert cell.verdict == ""
    p_holm = cell_of(ARMS, "metricopt").against_base.p_holm
    assert cell_of(records, "metricopt").against_base.p_holm == pytest.approx(p_holm)
    lines = tables.long_table(judge(LAYOUT, records)).set_index("row")
    assert math.isnan(lines.loc["metricopt-q50"]["p"])
    assert lines.loc["metricopt-q50"]["cost_gain"] == pytest.approx(0.04)
    assert cell.gap_closed == pytest.approx(0.04 / 0.055)
    main = tables.main_table(LAYOUT, judge(LAYOUT, records), BALANCED)
    assert "MetricOpt, 50 queries" not in main["method"].tolist()


def test_time_table():
    first, second = {"train": 1.0, "search": 2.0}, {"train": 3.0}
    records = [
        make_record("shift", 0, [0.1], queries=5, seconds=first, gradient_steps=7),
        make_record("shift", 1, [0.1], queries=15, seconds=second, gradient_steps=7),
    ]
    table = time_table(LAYOUT, records)
    assert table.to_dict("records") == [
        {
            "method": "threshold shift",
            "runs": "2",
            "queries": "5-15",
            "shared queries": "0",
            "steps": "7",
            "search s": "2.00",
            "train s": "2.00",
            "total s": "3.00",
        }
    ]
