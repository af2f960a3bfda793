"""The section on the order of rows, against hand-worked cases and scipy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchmarks.report.cells import judge
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.report.sections.order import ORDER, kendall_tau, order_of_rows
from benchmarks.runs.spec import Unit
from tests.benchmarks.report.report_cases import (
    MCR,
    cells_in,
    make_arm,
    make_layout,
    make_record,
    make_row,
    page_of,
    placed,
)

PAPER = {"loss-only": "ce", "surrogate": "sl", "metricopt": "metricopt"}
"""Rows of Table 3, whose errors are .1520, .1502 and .1369 in the paper."""
LAYOUT = make_layout(
    [make_row(name, paper_row=row) for name, row in PAPER.items()],
    [MCR],
    paper_table="Table 3",
)
LOSS_ONLY = make_arm("loss-only", [0.20, 0.24, 0.22])
SURROGATE = make_arm("surrogate", [0.21, 0.25, 0.23])
METRICOPT = make_arm("metricopt", [0.17, 0.26, 0.15])
PLACE = ["Balanced", "A9A MCR ↓", "3"]


def lines(*arms, layout=LAYOUT):
    records = [record for arm in arms for record in arm]
    return cells_in(order_of_rows(layout, judge(layout, records)))


def test_a_line_by_hand():
    # Of three pairs two are alike: tau is (2 - 1) / 3. One sample in 27 holds the
    # second replicate alone, where the order is reversed.
    assert lines(LOSS_ONLY, SURROGATE, METRICOPT) == [
        [*PLACE, "2 of 3", "+0.33", "-1.00 to +0.33"]
    ]


def test_replicates_are_drawn_for_all_rows_together():
    # Rows differ by less than replicates do, and in each of them the same way.
    better = make_arm("surrogate", [0.19, 0.23, 0.21])
    best = make_arm("metricopt", [0.18, 0.22, 0.20])
    same = [[*PLACE, "3 of 3", "+1.00", "+1.00 to +1.00"]]
    assert lines(LOSS_ONLY, better, best) == same
    # Of two further replicates, which one row lacks, nothing is known.
    further = make_arm("loss-only", [0.20, 0.24, 0.22, 0.10, 0.10])
    assert lines(further, better, best) == same


def test_one_replicate_leaves_no_interval():
    (line,) = lines(LOSS_ONLY[:1], SURROGATE[:1], METRICOPT[:1])
    assert line == [*PLACE, "2 of 3", "+0.33", "·"]


def test_a_network_of_a_row_says_nothing_of_others():
    # Fine-tuning runs of one network are no replicates.
    arms = [make_record(row, 0, [0.2, 0.3, 0.25]) for row in PAPER]
    layout = replace(LAYOUT, replicated=False)
    (line,) = lines(arms, layout=layout)
    assert line[5] == "·"


def test_another_metric_may_be_what_is_compared():
    column = Column(
        "a9a/jac",
        "A9A JAC",
        Unit("jaccard"),
        paper_column="a9a/jac",
        compare_metric="jaccard-legacy",
    )
    # .8461, .8488 and .8691 in the paper.
    rows = {"lovasz": "lo", "surrogate": "sl", "metricopt": "metricopt"}
    layout = make_layout(
        [make_row(name, paper_row=row) for name, row in rows.items()],
        [column],
        paper_table="Table 3",
    )
    records = []
    for place, row in enumerate(rows):
        for replicate, level in enumerate((0.5, 0.7)):
            value = level + 0.01 * place
            record = make_record(
                row,
                replicate,
                [-value],
                column="a9a/jac",
                also=(Unit("jaccard-legacy"),),
            )
            values = {"jaccard": [1 - value], "jaccard-legacy": [value]}
            records.append(replace(record, observe=values, test=values))
    perfect = ["Balanced", "A9A JAC ↑", "3", "3 of 3", "+1.00"]
    assert lines(records, layout=layout) == [[*perfect, "+1.00 to +1.00"]]
    # Without a replicate of one row, its other one is held against the same of others.
    assert lines(records[1:], layout=layout) == [[*perfect, "·"]]


def test_ties_are_told_apart_from_pairs():
    # The paper has .942 for both losses of AUC: five pairs of four rows count.
    rows = ("ce", "aucroc", "aucpr", "dense")
    column = Column(
        "cifar10/aucpr", "AUCPR", Unit("aucpr"), paper_column="cifar10/aucpr"
    )
    layout = make_layout(
        [make_row(row, paper_row=row) for row in rows], [column], paper_table="Table 2"
    )
    found = [
        make_record(row, 0, [value], column="cifar10/aucpr", metric="aucpr")
        for row, value in zip(rows, (0.8, 0.9, 0.95, 0.85), strict=True)
    ]
    (line,) = lines(found, layout=layout)
    assert line[2:4] == ["4", "5 of 5"]
    # Here none differ, but for rounding.
    equal = [replace(r, test={"aucpr": [0.1 + 0.2]}) for r in found[:2]]
    equal += [replace(r, test={"aucpr": [0.3]}) for r in found[2:]]
    (line,) = lines(equal, layout=layout)
    assert line[3:] == ["0 of 5", "·", "·"]


def test_blocks_are_ordered_apart():
    layout = replace(
        LAYOUT, blocks=(Block("balanced", "Balanced"), Block("natural", "Natural"))
    )
    arms = [*LOSS_ONLY, *SURROGATE, *METRICOPT]
    other = [placed(record, block="natural") for record in arms]
    assert len(lines(arms, layout=layout)) == 1
    assert len(lines(arms, other, layout=layout)) == 2


def test_two_rows_have_no_order():
    assert lines(LOSS_ONLY, METRICOPT) == []
    assert ORDER not in page_of(LAYOUT, [*LOSS_ONLY, *METRICOPT])
    page = page_of(LAYOUT, [*LOSS_ONLY, *SURROGATE, *METRICOPT])
    assert f"\n{ORDER}\n" in page


def test_tau_is_that_of_scipy():
    drawn = np.random.default_rng(0)
    printed = drawn.integers(0, 4, 7).astype(float)
    means = drawn.integers(0, 4, (20, 7)).astype(float)
    expected = [kendalltau(sample, printed).statistic for sample in means]
    assert kendall_tau(means, printed) == pytest.approx(expected)
