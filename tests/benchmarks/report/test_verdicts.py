"""Verdicts of a table: one question per row, in four words."""

import dataclasses
import math

import pytest
from scipy.stats import ttest_ind

from benchmarks.report import tables
from benchmarks.report.cells import (
    BETTER,
    EQUAL,
    NOT_SHOWN,
    UNTESTED,
    WORSE,
    judge,
)
from tests.benchmarks.report.report_cases import (
    ARMS,
    BALANCED,
    F1,
    LAYOUT,
    LOSS_ONLY,
    MCR,
    METRICOPT,
    NATURAL,
    by_row,
    cell_of,
    make_arm,
    p_value_of,
    page_of,
)


def test_p_values_are_adjusted_over_the_columns_of_a_row_and_block():
    weaker = p_value_of(0.055 * math.sqrt(3) / 0.005)
    stronger = p_value_of(0.04 * math.sqrt(3) / 0.001)
    other = make_arm("loss-only", [0.60, 0.62, 0.61], column="a9a/f1")
    other += make_arm("shift", [0.60, 0.62, 0.61], column="a9a/f1")
    other += make_arm("loss-only", [0.20, 0.22, 0.21], block="natural")
    other += make_arm("shift", [0.20, 0.22, 0.21], block="natural")
    records = [*ARMS, *other]
    assert cell_of(records, "metricopt").against_base.p_holm == pytest.approx(stronger)
    assert cell_of(records, "shift").against_base.p_holm == pytest.approx(2 * weaker)
    natural = cell_of(records, "shift", block=NATURAL).against_base
    assert natural.p_holm == natural.p_value == 1.0


def test_replicates_that_are_random_splits_have_a_corrected_test():
    """The variance of a difference is (1 / 3 + 2 / 7) times what it is without."""
    column = dataclasses.replace(MCR, test_per_train=2 / 7)
    layout = dataclasses.replace(LAYOUT, columns=(column,))
    found = by_row(layout, ARMS)
    error = 0.001 * math.sqrt(1 / 3 + 2 / 7)
    versus = found["metricopt"].against_base
    assert versus.error == pytest.approx(error)
    assert versus.p_value == pytest.approx(p_value_of(0.04 / error))
    page = page_of(layout, ARMS)
    assert "each with a random split, a network" in page
    assert "by Nadeau and Bengio, 2003, n_test / n_train = 0.29" in page
    # Meta-tests of one network share the split.
    one = [record for record in ARMS if record.spec.replicate == 0]
    cell = by_row(layout, one)["metricopt"]
    assert cell.unit == "meta-test"
    expected = ttest_ind([0.199, 0.201], [0.160, 0.162], equal_var=False)
    assert cell.against_base.p_value == pytest.approx(expected.pvalue)


def test_verdicts():
    assert cell_of(ARMS, "loss-only").verdict == ""
    assert cell_of(ARMS, "metricopt").verdict == BETTER
    for values, verdict in (
        ([0.24, 0.261, 0.25], WORSE),
        ([0.21, 0.21, 0.21], NOT_SHOWN),
        ([0.2001, 0.22, 0.2099], EQUAL),
        # Equal only by a margin greater than that of the column.
        ([0.2011, 0.2209, 0.2110], WORSE),
        ([0.197, 0.223, 0.21], NOT_SHOWN),
    ):
        records = [*LOSS_ONLY, *make_arm("metricopt", values)]
        assert cell_of(records, "metricopt").verdict == verdict
    assert cell_of(METRICOPT, "metricopt").verdict == UNTESTED
    single = [*LOSS_ONLY, METRICOPT[0]]
    assert cell_of(single, "metricopt").verdict == UNTESTED
    assert tables.number_text(cell_of(single, "metricopt")) == ".1610 (1)"


def test_what_is_equal_depends_on_the_margin_of_the_column():
    records = [*LOSS_ONLY, *make_arm("metricopt", [0.197, 0.223, 0.21])]
    column = dataclasses.replace(MCR, margin=0.01)
    layout = dataclasses.replace(LAYOUT, columns=(column, F1))
    cells = judge(layout, records)
    assert [cell.verdict for cell in cells] == ["", EQUAL]
    main = tables.main_table(layout, cells, BALANCED)
    assert main.iloc[1, 1] == ".2100±.0130 (3) ="
    page = page_of(layout, records)
    assert "`=` equal within .0100 and .0020 in A9A F1 (two one-sided tests)" in page
    line = tables.long_table(cells).iloc[1]
    assert line["verdict"] == "equal within .0100"
    assert line["p_equal_holm"] < 0.05 < line["p_holm"]


def test_a_table_in_which_nothing_can_be_shown_says_so_above_itself():
    def above(records):
        page = page_of(LAYOUT, records)
        return page.split("## Balanced\n")[1].split("\n|")[0].strip()

    assert above(ARMS) == ""
    nothing = "Nothing can be shown in this table: with n = "
    alone = above([*LOSS_ONLY, METRICOPT[0]])
    assert alone == f"{nothing}1, there is no test."
    # The same gain twice: of four arrangements of signs two are as extreme.
    pairs = [*make_arm("loss-only", [0.2, 0.3]), *make_arm("shift", [0.1, 0.2])]
    reached = "no comparison can reach a p below 0.50 after Holm."
    assert above(pairs) == f"{nothing}2, {reached}"
    # Gains of -1 and 1: beside that spread even a gain of 1 is nothing.
    wide = [*make_arm("loss-only", [0.001, 0.999]), *make_arm("shift", [0.999, 0.001])]
    assert above(wide) == f"{nothing}2, {reached}"
    assert above(make_arm("loss-only", [0.2, 0.3])) == ""


def test_higher_is_better_turns_the_verdict():
    base = make_arm("loss-only", [0.60, 0.62, 0.61], column="a9a/f1")
    lower = make_arm("metricopt", [0.561, 0.579, 0.570], column="a9a/f1")
    cell = cell_of([*base, *lower], "metricopt", F1)
    assert cell.against_base.gain == pytest.approx(-0.04)
    assert cell.verdict == WORSE
