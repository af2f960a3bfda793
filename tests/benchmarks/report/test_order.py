"""The section on the order of rows, against hand-worked cases and scipy."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchmarks.report.cells import judge
from benchmarks.report.sections.order import ORDER, kendall_tau, order_of_rows
from tests.benchmarks.report.report_cases import (
    MCR,
    cells_in,
    make_arm,
    make_layout,
    make_row,
    page_of,
)

PAPER = {"loss-only": "ce", "surrogate": "sl", "metricopt": "metricopt"}
"""Rows of Table 3, whose errors are .1520, .1502 and .1369 in the paper."""
LAYOUT = make_layout(
    [make_row(name, paper_row=row) for name, row in PAPER.items()],
    [MCR],
    paper_table="Table 3",
)
LOSS_ONLY = make_arm("loss-only", [0.20, 0.24, 0.22])
METRICOPT = make_arm("metricopt", [0.17, 0.26, 0.15])
PLACE = ["Balanced", "A9A MCR ↓", "3"]


def lines(*arms):
    records = [record for arm in arms for record in arm]
    return cells_in(order_of_rows(LAYOUT, judge(LAYOUT, records)))


def test_a_line_by_hand():
    # Worse than the loss alone in every replicate, though replicates differ by more.
    surrogate = make_arm("surrogate", [0.21, 0.25, 0.23])
    (line,) = lines(LOSS_ONLY, surrogate, METRICOPT)
    # Of three pairs two are alike: tau is (2 - 1) / 3. One sample in 27 holds the
    # second replicate alone, where the order is reversed.
    assert line == [*PLACE, "2 of 3", "+0.33", "-1.00 to +0.33"]


def test_replicates_are_drawn_for_all_rows_together():
    better = make_arm("surrogate", [0.19, 0.23, 0.21])
    best = make_arm("metricopt", [0.18, 0.22, 0.20])
    assert lines(LOSS_ONLY, better, best) == [
        [*PLACE, "3 of 3", "+1.00", "+1.00 to +1.00"]
    ]


def test_a_row_with_one_value_leaves_no_interval():
    (line,) = lines(LOSS_ONLY, make_arm("surrogate", [0.21]), METRICOPT)
    assert line == [*PLACE, "3 of 3", "+1.00", "·"]


def test_two_rows_have_no_order():
    assert lines(LOSS_ONLY, METRICOPT) == []
    assert ORDER not in page_of(LAYOUT, [*LOSS_ONLY, *METRICOPT])
    three = [*LOSS_ONLY, *METRICOPT, *make_arm("surrogate", [0.2, 0.2, 0.2])]
    assert f"\n{ORDER}\n" in page_of(LAYOUT, three)


def test_tau_is_that_of_scipy():
    drawn = np.random.default_rng(0)
    printed = drawn.integers(0, 4, 7).astype(float)
    means = drawn.integers(0, 4, (20, 7)).astype(float)
    expected = [kendalltau(sample, printed).statistic for sample in means]
    assert kendall_tau(means, printed) == pytest.approx(expected)
    assert np.isnan(kendall_tau(np.zeros((1, 7)), printed)).all()
