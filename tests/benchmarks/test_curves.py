import math

import pytest

from benchmarks.curves import budget_curve, curve, value_at
from tests.benchmarks.report_cases import TRACE, make_arm, make_record, make_trace

FULL = make_arm("metricopt", [0.161, 0.179, 0.170], queries=4800)


def test_value_at_takes_the_last_entry_within_the_budget():
    record = make_record("shift", 0, [0.1], trace=TRACE, queries=151)
    found = [value_at(record, "test", queries) for queries in (9, 10, 50, 150, 151)]
    assert found == [None, *map(pytest.approx, (0.32, 0.22, 0.22, 0.12))]
    assert value_at(record, "observe", 50) == pytest.approx(0.21)
    assert value_at(record, "observe", 151) is None


def test_value_at_of_rows_without_amake_trace():
    tuned = make_record("metricopt-q50", 0, [0.1, 0.3], queries=48)
    assert value_at(tuned, "test", 50) == pytest.approx(0.2)
    assert value_at(tuned, "test", 150) is None
    over = make_record("metricopt-q50", 0, [0.1], queries=51)
    assert value_at(over, "test", 50) is None
    plain = make_record("loss-only", 0, [0.1], queries=0)
    assert value_at(plain, "test", 50) == pytest.approx(0.1)


def test_curve_averages_replicates_on_a_common_grid():
    one = make_trace((0, 0, None, [0.4]), (2, 0, None, [0.2]))
    two = make_trace((0, 0, None, [0.2]), (1, 0, None, [0.1]), (1, 5, None, [0.0]))
    records = [
        make_record("shift", n, [0.1], trace=t) for n, t in enumerate((one, two))
    ]
    found = curve(records, axis="step", split="test")
    assert found.x == (0, 1, 2)
    assert found.mean == pytest.approx((0.3, 0.2, 0.1))
    half = math.sqrt(2) / 2
    assert found.std == pytest.approx((0.2 * half, 0.4 * half, 0.2 * half))
    assert curve(records, axis="step", split="observe") is None
    assert curve(records[:0], axis="step", split="test") is None
    assert curve(records[:1], axis="queries", split="test") is None


def test_budget_curve_joins_rows_of_an_arm():
    records = [*make_arm("metricopt-q50", [0.2, 0.4], queries=50), *FULL]
    found = budget_curve(records, "metricopt", "test")
    assert found.x == (50, 4800)
    assert found.mean == pytest.approx((0.3, 0.17))
    assert budget_curve(FULL, "metricopt", "test") is None
