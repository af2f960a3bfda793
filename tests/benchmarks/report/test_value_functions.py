"""Rows with several value functions on one network: these are the replication."""

import dataclasses

import pytest
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from benchmarks.report import tables
from benchmarks.report.columns import Reading
from benchmarks.report.curves import curve
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    MCR,
    by_row,
    make_finetuned,
    make_record,
    make_row,
    page_of,
)

ROWS = (
    make_row("untouched"),
    make_finetuned("loss-only", "loss only"),
    make_row("cma-es", "CMA-ES", "metricopt"),
    make_finetuned("metricopt", "MetricOpt", "loss-only"),
    make_finetuned("other", "the other MetricOpt", "metricopt"),
    make_finetuned("plain", "MetricOpt against untouched", "untouched"),
)
TABLE = dataclasses.replace(
    LAYOUT,
    rows=ROWS,
    columns=(MCR,),
    loss_only_row=None,
    threshold_shift_row=None,
    paper_table=None,
)
BASE = [0.30, 0.32, 0.34, 0.32]
# Three value functions with four meta-tests each: means .24, .26 and .22.
FIRST = [0.23, 0.24, 0.26, 0.23, 0.25, 0.26, 0.27, 0.26, 0.21, 0.22, 0.23, 0.22]
OTHER = [0.25] * 4 + [0.29] * 4 + [0.22] * 4
SEARCHES = [0.21, 0.22, 0.23]


def several(row, values, replicate=0, **fields):
    return make_record(row, replicate, values, value_functions=3, **fields)


RECORDS = [
    make_record("untouched", 0, [0.31]),
    make_record("loss-only", 0, BASE),
    make_record("cma-es", 0, SEARCHES),
    several("metricopt", FIRST),
    several("other", OTHER),
    several("plain", FIRST),
]
MEANS, OTHERS = [0.24, 0.26, 0.22], [0.25, 0.29, 0.22]


@pytest.fixture(scope="module")
def cells():
    return by_row(TABLE, RECORDS)


def test_a_cell_has_one_value_per_value_function(cells):
    cell = cells["metricopt"]
    assert cell.unit == "value function"
    assert cell.all_values == pytest.approx(MEANS)
    assert tables.number_text(cell) == ".2400±.0200 (3)"
    assert cells["loss-only"].unit == "meta-test"


def test_value_functions_are_held_against_the_mean_of_the_same_meta_tests(cells):
    """Means over i of base_i - method_vi, one per value function v."""
    versus = cells["metricopt"].against_base
    gains = [
        sum(b - m for b, m in zip(BASE, FIRST[at : at + 4], strict=True)) / 4
        for at in (0, 4, 8)
    ]
    expected = ttest_1samp(gains, 0.0)
    assert versus.gain == pytest.approx(0.08)
    assert versus.p_value == pytest.approx(expected.pvalue)
    assert versus.interval == pytest.approx(tuple(expected.confidence_interval()))


def test_other_comparisons_of_value_functions(cells):
    both = ttest_rel(MEANS, OTHERS).pvalue
    assert cells["other"].against_base.p_value == pytest.approx(both)
    searched = ttest_ind(MEANS, SEARCHES, equal_var=False).pvalue
    assert cells["cma-es"].against_base.p_value == pytest.approx(searched)
    untouched = ttest_1samp(MEANS, 0.31).pvalue
    assert cells["plain"].against_base.p_value == pytest.approx(untouched)


def test_replicates_count_with_the_mean_over_value_functions():
    records = [
        *RECORDS[:4],
        make_record("loss-only", 1, BASE),
        several("metricopt", [0.2] * 12, replicate=1),
    ]
    cell = by_row(TABLE, records)["metricopt"]
    assert cell.unit == "replicate"
    assert cell.values == pytest.approx({0: 0.24, 1: 0.2})
    page = page_of(TABLE, records)
    text = "A replicate counts with the mean over its value functions and meta-tests."
    assert text in page


def test_the_page_says_over_what_the_spread_is():
    page = page_of(TABLE, RECORDS)
    text = "In rows with several value functions it is over these, each with the mean"
    assert text in page
    assert "share one value function" not in page
    both = [*RECORDS[:5], make_record("plain", 0, BASE, shared_queries=5)]
    page = page_of(TABLE, both)
    assert "One value function only: MetricOpt against untouched." in page
    alone = [*RECORDS[:2], make_record("metricopt", 0, BASE, shared_queries=5)]
    page = page_of(TABLE, alone)
    assert text not in page
    assert "In a row that meta-trains, all runs share one value function." in page


def test_curves_are_over_value_functions():
    trace = [(0, 0, None, [0.3] * 12), (1, 0, None, FIRST)]
    record = several("metricopt", FIRST, trace=trace)
    found = curve([record], Reading(MCR, replicated=False), axis="step")
    assert found.mean == pytest.approx((0.3, 0.24))
    assert found.std == pytest.approx((0.0, 0.02))
