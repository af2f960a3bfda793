import dataclasses
import math

import pytest

from benchmarks.report import tables
from benchmarks.report.cells import BETTER, judge
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.report.report_cases import (
    ARMS,
    BALANCED,
    F1,
    JAC,
    LAYOUT,
    LOSS_ONLY,
    NATURAL,
    SHIFT,
    cell_of,
    make_arm,
    make_record,
    make_row,
    p_value_of,
    placed,
)


def test_cell_numbers_by_hand():
    cell = cell_of(ARMS, "metricopt")
    assert cell.mean == pytest.approx(0.17)
    assert cell.std == pytest.approx(0.009)
    versus = cell.against_base
    assert versus.gain == pytest.approx(0.04)
    assert versus.error == pytest.approx(0.001 / math.sqrt(3))
    assert versus.p_value == pytest.approx(p_value_of(0.04 * math.sqrt(3) / 0.001))
    assert cell.gap_closed == pytest.approx(0.04 / 0.055)
    assert tables.number_text(cell) == ".1700±.0090 (3)"


def test_paper_verdicts():
    cell = cell_of(ARMS, "metricopt")
    assert cell.paper_difference == pytest.approx(0.17 - 0.1369)
    assert cell.paper_verdict == "short of it by .0331"
    assert cell_of(ARMS, "shift").paper_verdict == ""
    for values, verdict in (
        ([0.70, 0.71], "reaches the paper"),
        ([0.69336, 0.69336], "reaches the paper"),
        ([0.68, 0.68], "short of it by .0134"),
    ):
        records = make_arm("metricopt", values, column="a9a/f1")
        assert cell_of(records, "metricopt", F1).paper_verdict == verdict
    other = make_arm("metricopt", [0.9, 0.9], column="a9a/jac")
    verdict = cell_of(other, "metricopt", JAC).paper_verdict
    assert verdict == "not comparable: another index"
    natural = make_arm("metricopt", [0.1, 0.1], block="natural")
    verdict = cell_of(natural, "metricopt", block=NATURAL).paper_verdict
    assert verdict == "not comparable: other sampling"


def test_trouble_is_shown_and_left_out_of_the_mean():
    bad = [
        make_record("shift", 3, [float("nan")], status="diverged"),
        make_record("shift", 4, [], status="failed"),
        make_record("shift", 5, [float("nan")]),
    ]
    cell = cell_of([*ARMS, *bad], "shift")
    assert cell.trouble == "diverged 1/6, failed 2/6"
    assert cell.mean == pytest.approx(0.155)
    table = tables.main_table(LAYOUT, judge(LAYOUT, [*ARMS, *bad]), BALANCED)
    assert table.iloc[1, 1] == ".1550±.0050 (3) + diverged 1/6, failed 2/6"
    table = tables.main_table(LAYOUT, judge(LAYOUT, bad[:1]), BALANCED)
    assert table.iloc[0, 1] == "diverged 1/1"


def test_main_table_in_full():
    table = tables.main_table(LAYOUT, judge(LAYOUT, ARMS), BALANCED)
    assert list(table) == ["method", "A9A MCR ↓", "A9A F1 ↑", "A9A JAC ↑", "queries"]
    assert table.values.tolist() == [
        ["loss only", ".2100±.0100 (3)", "·", "·", "0"],
        ["threshold shift", ".1550±.0050 (3) +", "·", "·", "0"],
        ["MetricOpt", ".1700±.0090 (3) +", "·", "·", "4,800"],
        ["paper: cross-entropy", ".1520", "·", "·", ""],
        ["paper: Lovász-Softmax", "·", "·", ".8461*", ""],
        ["paper: cost-sensitive", "·", ".6823", "·", ""],
        ["paper: learned surrogate loss", ".1502", ".6866", ".8488*", ""],
        ["paper: MetricOpt", ".1369", ".6934", ".8691*", ""],
    ]


def test_paper_table_in_full():
    table = tables.paper_table(LAYOUT, judge(LAYOUT, ARMS))
    assert [" | ".join(line) for line in table.values.tolist()[:2]] == [
        "Balanced | A9A MCR ↓ | loss only | .2100±.0100 (3) | .1520 | +.0580 | "
        "short of it by .0580",
        "Balanced | A9A MCR ↓ | MetricOpt | .1700±.0090 (3) | .1369 | +.0331 | "
        "short of it by .0331",
    ]
    lines = table[table["ours"] == "not built yet"]
    assert lines[["column", "method", "paper"]].values.tolist() == [
        ["A9A JAC ↑", "Lovász-Softmax", ".8461"],
        ["A9A F1 ↑", "cost-sensitive", ".6823"],
        ["A9A MCR ↓", "learned surrogate loss", ".1502"],
        ["A9A F1 ↑", "learned surrogate loss", ".6866"],
        ["A9A JAC ↑", "learned surrogate loss", ".8488"],
    ]
    assert set(lines["block"]) == {"Balanced"}
    assert set(lines["difference"]) | set(lines["verdict"]) == {"·"}
    # Built, but not run: what is missing is a run, not a method.
    assert "MetricOpt" not in table[table["column"] == "A9A F1 ↑"]["method"].tolist()


def test_long_table_has_one_line_of_numbers_percell_of():
    notes = {"spearman_loss": [0.8, 0.6]}
    noted = make_arm("metricopt", [0.161, 0.179, 0.170], notes=notes)
    table = tables.long_table(judge(LAYOUT, [*LOSS_ONLY, *SHIFT, *noted]))
    line = table.set_index("row").loc["metricopt"]
    assert len(table) == 3
    assert line["n"] == 3
    assert line["mean"] == pytest.approx(0.17)
    assert line["observe_mean"] == pytest.approx(0.17)
    assert line["cost_gain"] == pytest.approx(0.04)
    # The quantile of t with 2 degrees of freedom is 0.95 sqrt(2 / (1 - 0.95^2)).
    half = 0.95 * math.sqrt(2 / (1 - 0.95**2)) * 0.001 / math.sqrt(3)
    assert line["cost_gain_low"] == pytest.approx(0.04 - half)
    assert line["cost_gain_high"] == pytest.approx(0.04 + half)
    assert line["difference"] == pytest.approx(0.0331)
    assert line["gap_closed"] == pytest.approx(0.04 / 0.055)
    assert line["spearman_loss"] == pytest.approx(0.7)
    assert line["spearman_guided"] is None
    assert line["verdict"] == BETTER


def test_gap_table():
    notes = {"spearman_guided": 0.93}
    noted = make_arm("metricopt", [0.161, 0.179, 0.170], notes=notes)
    noise = make_arm("shift", [0.15, 0.25, 0.20])
    plain = dataclasses.replace(LAYOUT, threshold_shift_row=None)
    for layout, shift, text in (
        (LAYOUT, SHIFT, "73 % (rho · / 0.93)"),
        (LAYOUT, noise, "in noise (rho · / 0.93)"),
        (plain, [], "rho · / 0.93"),
    ):
        cells = judge(layout, [*LOSS_ONLY, *shift, *noted])
        table = tables.gap_table(layout, cells, BALANCED)
        assert table.values.tolist() == [["MetricOpt", text, "·", "·"]]


FIRST = LOSS_ONLY[0]
OTHER_DATA = make_record("shift", 0, [0.1], data={"variant": "a9a"})


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "expected records of 'table3', got none"),
        (make_arm("cma", [0.1]), "the row 'cma', which the layout of 'table3'"),
        ([FIRST, placed(FIRST, tier="paper")], "shows one tier, got local, paper"),
        ([FIRST, OTHER_DATA], "column 'a9a/mcr', got a9a, a9a-sample"),
        (
            [placed(FIRST, experiment="fig1")],
            "expected records of 'table3', got 'fig1'",
        ),
    ],
)
def test_records_that_cannot_share_a_table(records, message):
    with pytest.raises(DataError, match=message):
        judge(LAYOUT, records)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rows": (make_row("a"), make_row("a", "B"))},
            "expected one row 'a', got two",
        ),
        ({"loss_only_row": "none"}, "refers to the row 'none' it lacks"),
        ({"rival_row": "none"}, "refers to the row 'none' it lacks"),
        ({"untouched_row": "none"}, "refers to the row 'none' it lacks"),
        ({"mismatch_rows": ("shift", "none")}, "refers to the row 'none' it lacks"),
    ],
)
def test_bad_layout(change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(LAYOUT, **change)
