import math
from dataclasses import replace

import pytest

from benchmarks.report.curves import Curve, at_budget, budget_curve, curve, values_at
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    MCR,
    METRICOPT,
    TRACE,
    make_arm,
    make_record,
)

BY_REPLICATE = LAYOUT.reading(MCR)
BY_TEST = replace(BY_REPLICATE, replicated=False)
HALF = math.sqrt(2) / 2


def test_values_at_takes_the_last_entry_within_the_budget():
    record = make_record("shift", 0, [0.1], trace=TRACE, queries=151)
    found = [
        values_at(record, "test", queries, BY_REPLICATE)
        for queries in (9, 10, 50, 150, 151)
    ]
    assert found[0] == ()
    assert found[1:] == [pytest.approx((v,)) for v in (0.32, 0.22, 0.22, 0.1)]
    assert values_at(record, "observe", 50, BY_REPLICATE) == pytest.approx((0.21,))
    assert values_at(record, "observe", 151, BY_REPLICATE) == (0.1,)


def test_values_at_of_rows_without_a_trace():
    tuned = make_record("metricopt-q50", 0, [0.1, 0.3], queries=48)
    assert values_at(tuned, "test", 50, BY_REPLICATE) == pytest.approx((0.2,))
    assert values_at(tuned, "test", 50, BY_TEST) == (0.1, 0.3)
    assert values_at(tuned, "test", 150, BY_REPLICATE) == ()
    over = make_record("metricopt-q50", 0, [0.1], queries=51)
    assert values_at(over, "test", 50, BY_REPLICATE) == ()
    plain = make_record("loss-only", 0, [0.1], queries=0)
    assert values_at(plain, "test", 50, BY_REPLICATE) == (0.1,)


def test_at_budget_counts_replicates_or_meta_tests():
    records = [
        make_record("shift", n, [0.1], trace=TRACE, queries=151) for n in range(2)
    ]
    assert at_budget(records, "shift", 50, BY_REPLICATE) == pytest.approx([0.22, 0.22])
    found = at_budget(records, "shift", 50, BY_TEST)
    assert found == [0.21, 0.23, 0.21, 0.23]


def test_curve_averages_replicates_on_a_common_grid():
    one = ((0, 0, None, [0.4]), (2, 0, None, [0.2]))
    two = ((0, 0, None, [0.2]), (1, 0, None, [0.1]), (1, 5, None, [0.0]))
    records = [
        make_record("shift", n, [0.1], trace=t) for n, t in enumerate((one, two))
    ]
    found = curve(records, BY_REPLICATE, axis="step")
    assert found.x == (0, 1, 2)
    assert found.mean == pytest.approx((0.3, 0.2, 0.1))
    assert found.std == pytest.approx((0.2 * HALF, 0.4 * HALF, 0.2 * HALF))
    for own, axis, split in (
        (records, "step", "observe"),
        (records[:0], "step", "test"),
        (records[:1], "queries", "test"),
        # One of them has no trace.
        ([*records, make_record("shift", 2, [0.1])], "step", "test"),
    ):
        assert curve(own, BY_REPLICATE, axis=axis, split=split) is None


def test_curve_averages_meta_tests():
    values = [0.4, 0.2], [None, 0.1], [0.2, 0.1]
    trace = [(step, 0, None, each) for step, each in enumerate(values)]
    record = make_record("shift", 0, [0.2, 0.1], trace=trace)
    found = curve([record], BY_TEST, axis="step")
    assert found.x == (0, 2)
    assert found.mean == pytest.approx((0.3, 0.15))
    assert found.std == pytest.approx((0.2 * HALF, 0.1 * HALF))


def test_curve_over_queries_ends_where_all_are_spent():
    trace = ((0, 1, [0.5], [0.4]), (0, 40, [0.3], [0.2]))
    record = make_record("shift", 0, [0.2], trace=trace, queries=120)
    found = curve([record], BY_TEST, axis="queries")
    assert (found.x, found.mean) == ((1, 40, 120), (0.4, 0.2, 0.2))
    # Offsets that nothing improved have one entry, and a line none the less.
    record = make_record("shift", 0, [0.4], trace=trace[:1], queries=120)
    found = curve([record], BY_TEST, axis="queries")
    assert (found.x, found.mean, found.std) == ((1, 120), (0.4, 0.4), (0, 0))
    assert curve([record], BY_TEST, axis="step") is None


def test_budget_curve_joins_rows_of_an_arm():
    records = [*make_arm("metricopt-q50", [0.2, 0.4], queries=50), *METRICOPT]
    found = budget_curve(records, "metricopt", BY_REPLICATE)
    assert found.x == (50, 4800)
    assert found.mean == pytest.approx((0.3, 0.17))
    assert budget_curve(METRICOPT, "metricopt", BY_REPLICATE) is None
    one = [make_record("metricopt-q50", 0, [0.2, 0.4], queries=50), METRICOPT[0]]
    found = budget_curve(one, "metricopt", BY_TEST)
    assert found.mean == pytest.approx((0.3, 0.161))
    assert found.std == pytest.approx((0.2 * HALF, 0.002 * HALF))


def test_a_geometric_mean_has_a_band_above_zero():
    values = {0: [1.0, 100.0], 1: [5.0]}
    line = Curve.of(values, geometric=True)
    assert line.mean == pytest.approx((10.0, 5.0))
    below, above = line.band
    # Logarithms are 2 log 10 apart, which is sqrt(2) deviations.
    assert below == pytest.approx([10 ** (1 - 2**0.5), 5.0])
    assert above == pytest.approx([10 ** (1 + 2**0.5), 5.0])
    assert line.at([1]).band == ([pytest.approx(5.0)], [pytest.approx(5.0)])
    plain = Curve.of(values)
    assert plain.band[0][0] < 0 < plain.mean[0] == 50.5
