"""Tables with a column of one network beside a column of several replicates."""

import dataclasses

import pytest
from scipy.stats import ttest_rel

from benchmarks.report.cells import judge
from benchmarks.report.remarks import facts, legend
from tests.benchmarks.report.report_cases import F1, LAYOUT, MCR, make_arm, make_record

ONE = [
    make_record("loss-only", 0, [0.20, 0.22, 0.21], value_functions=3),
    make_record("shift", 0, [0.15, 0.16, 0.17], shared_queries=9, value_functions=3),
    make_record("metricopt", 0, [0.19, 0.20, 0.19], shared_queries=9),
]
SEVERAL = [
    *make_arm("loss-only", [0.60, 0.61, 0.63], column=F1.name),
    *make_arm("shift", [0.64, 0.66, 0.66], column=F1.name, shared_queries=9),
]
COLUMNS = dataclasses.replace(
    LAYOUT, columns=(MCR, F1), threshold_shift_row=None, mixed=True
)
MIXED = COLUMNS.fitted([*ONE, *SEVERAL])


def cell(row, column):
    (found,) = [
        each
        for each in judge(MIXED, [*ONE, *SEVERAL])
        if (each.row.name, each.column) == (row, column)
    ]
    return found


def test_a_column_has_one_replicate_or_several():
    assert MIXED.once == {MCR.name}
    assert not MIXED.is_replicated(MCR)
    assert MIXED.is_replicated(F1)
    alone = COLUMNS.fitted(ONE)
    assert (alone.replicated, alone.once) == (False, frozenset())
    # Where columns have the same number, one of them is only incomplete.
    whole = dataclasses.replace(COLUMNS, mixed=False).fitted([*ONE, *SEVERAL])
    assert (whole.replicated, whole.once) == (True, frozenset())
    together = COLUMNS.fitted(SEVERAL)
    assert (together.replicated, together.once) == (True, frozenset())


def test_values_are_meta_tests_in_the_one_and_replicates_in_the_other():
    assert cell("shift", MCR).all_values == (0.15, 0.16, 0.17)
    found = cell("shift", F1)
    assert found.all_values == pytest.approx((0.64, 0.66, 0.66))
    wanted = ttest_rel([0.64, 0.66, 0.66], [0.60, 0.61, 0.63]).pvalue
    assert found.against_base.p_value == pytest.approx(wanted)


def test_the_page_says_what_spread_is_over_in_each():
    found = facts(MIXED, [*ONE, *SEVERAL])
    assert "Spread: over replicates" in found
    assert "In A9A MCR it is over meta-tests" in found
    assert "A replicate counts with the mean over its meta-tests." in found
    # The threshold shift of the other column has one, too, and is not compared there.
    assert "One value function only: MetricOpt." in found
    assert "; with one replicate, t-tests" in legend(MIXED)
