"""Tables of one network, where the meta-tests are what is counted and compared."""

import dataclasses
import math

import pytest
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from benchmarks.report import tables
from benchmarks.report.cells import BETTER, UNTESTED, judge
from benchmarks.report.columns import Column
from benchmarks.report.page import build
from benchmarks.report.sections.queries import equal_queries
from benchmarks.runs.spec import Unit
from metricopt.errors import DataError
from tests.benchmarks.report.report_cases import (
    by_row,
    cells_in,
    make_finetuned,
    make_layout,
    make_record,
    make_row,
    page_of,
)

MCR = Column("a9a/mcr", "MCR", Unit("mcr"))
F1 = Column("a9a/f1", "F1", Unit("f1"))
LAYOUT = make_layout(
    (
        make_row("untouched"),
        make_finetuned("loss-only", "loss only"),
        make_finetuned("dense", "dense", "loss-only"),
        make_row("offsets", base_row="untouched"),
        make_row("cma-es", "CMA-ES", "loss-only"),
        make_finetuned("metricopt", "MetricOpt", "loss-only"),
        make_finetuned(
            "metricopt-q50",
            "MetricOpt, 50 queries",
            "loss-only",
            variant_of="metricopt",
            budget=50,
        ),
    ),
    (MCR, F1),
    loss_only_row="loss-only",
    threshold_shift_row="offsets",
    query_budgets=(50, 150),
    rival_row="dense",
    network_of=lambda spec: spec.pipeline.name,
)
VALUES = {
    "untouched": [0.200],
    "loss-only": [0.201, 0.198, 0.204, 0.199],
    "dense": [0.195, 0.193, 0.199, 0.197],
    "offsets": [0.150],
    "cma-es": [0.162, 0.158],
    "metricopt": [0.172, 0.169, 0.174, 0.171],
    "metricopt-q50": [0.181, 0.182, 0.180, 0.179],
}
OFFSETS = ((0, 1, [0.21], [0.20]), (0, 90, [0.16], [0.15]))
RECORDS = [
    make_record(
        row,
        0,
        values,
        queries=1200 if row == "offsets" else 50 if row == "metricopt-q50" else 0,
        trace=OFFSETS if row == "offsets" else (),
    )
    for row, values in VALUES.items()
]


@pytest.fixture(scope="module")
def cells():
    return by_row(LAYOUT, RECORDS)


@pytest.fixture(scope="module")
def contents():
    found = build(LAYOUT, RECORDS)
    return {name: found[name].decode() for name in found if not name.endswith(".png")}


def test_meta_tests_are_the_values_of_a_cell(cells):
    assert cells["cma-es"].all_values == (0.162, 0.158)
    assert tables.number_text(cells["cma-es"]) == ".1600±.0028 (2)"
    assert tables.number_text(cells["offsets"]) == ".1500 (1)"


def test_meta_tests_with_the_same_starts_are_paired(cells):
    versus = cells["metricopt"].against_base
    expected = ttest_rel(VALUES["loss-only"], VALUES["metricopt"])
    assert versus.gain == pytest.approx(0.029)
    assert versus.p_value == pytest.approx(expected.pvalue)
    assert versus.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert cells["metricopt"].verdict == BETTER


def test_meta_tests_with_other_starts_are_not_paired_even_if_equally_many():
    rows = [dataclasses.replace(row, same_starts=False) for row in LAYOUT.rows]
    layout = dataclasses.replace(LAYOUT, rows=tuple(rows))
    versus = by_row(layout, RECORDS)["metricopt"].against_base
    expected = ttest_ind(VALUES["loss-only"], VALUES["metricopt"], equal_var=False)
    assert versus.p_value == pytest.approx(expected.pvalue)


def test_one_value_is_not_tested_and_different_numbers_are_by_welch(cells):
    assert cells["offsets"].verdict == UNTESTED
    assert cells["offsets"].against_base.gain == pytest.approx(0.05)
    versus = cells["cma-es"].against_base
    expected = ttest_ind(VALUES["loss-only"], VALUES["cma-es"], equal_var=False)
    assert versus.values == (4, 2)
    assert versus.p_value == pytest.approx(expected.pvalue)


def test_several_networks_are_compared_where_both_arms_are():
    records = [
        make_record("loss-only", 0, [0.2, 0.3]),
        make_record("loss-only", 1, [0.4, 0.5]),
        make_record("metricopt", 1, [0.1, 0.1]),
        make_record("metricopt", 2, [0.1, 0.1]),
    ]
    cell = judge(LAYOUT, records)[-1]
    assert cell.values == pytest.approx({1: 0.1, 2: 0.1})
    assert cell.unit == "replicate"
    assert cell.against_base.gain == pytest.approx(0.35)
    page = page_of(LAYOUT, records)
    # Fine-tuning runs of one network are no replicates of each other.
    assert (
        "- Spread: over replicates, each with an observe split, a network, an adapter "
        "and batches of its own; all share the test split. A replicate counts with the "
        "mean over its meta-tests."
    ) in page.splitlines()


def test_a_run_without_all_its_values_counts_with_none():
    records = [*RECORDS, make_record("metricopt", 1, [0.1, math.nan])]
    cell = by_row(LAYOUT, records)["metricopt"]
    assert cell.values == pytest.approx({0: sum(VALUES["metricopt"]) / 4})
    assert cell.trouble == "failed 1/2"


def test_gap_closed_follows_the_unit(cells):
    # Loss only .2005 on average, the offsets .15, and errors far smaller than that.
    assert cells["metricopt"].gap_closed == pytest.approx(0.029 / 0.0505)
    assert cells["cma-es"].gap_closed == pytest.approx(0.0405 / 0.0505)


def test_rival_compares_tested_rows_alone(cells):
    found = {name for name, cell in cells.items() if cell.against_rival}
    assert found == {"offsets", "cma-es", "metricopt"}
    dense = VALUES["dense"]
    p_values = {
        "offsets": ttest_1samp(dense, 0.150).pvalue,
        "cma-es": ttest_ind(dense, VALUES["cma-es"], equal_var=False).pvalue,
        "metricopt": ttest_rel(dense, VALUES["metricopt"]).pvalue,
    }
    for name, p_value in p_values.items():
        assert cells[name].against_rival.p_value == pytest.approx(p_value)
        # One column is one test: the other rows are questions of their own.
        assert cells[name].against_rival.p_holm == pytest.approx(p_value)
    layout = dataclasses.replace(LAYOUT, rival_row=None)
    assert not len(tables.rival_table(layout, judge(layout, RECORDS)))


def _of_network(row, network, theta):
    data = {"variant": "a9a-sample", "theta": theta}
    return make_record(row, 0, VALUES[row], pipeline=Unit(network), data=data)


def test_one_network_against_another_has_no_verdict():
    dense = _of_network("dense", "cross-entropy", "a")
    alike = _of_network("cma-es", "cross-entropy", "a")
    found = by_row(LAYOUT, [dense, alike, _of_network("metricopt", "aucpr", "b")])
    assert found["cma-es"].against_rival is not None
    assert found["metricopt"].against_rival is None
    # Two networks of one specification are not mixed.
    records = [dense, _of_network("cma-es", "cross-entropy", "b")]
    text = "one pre-trained network of cross-entropy, got a, b"
    with pytest.raises(DataError, match=text):
        judge(LAYOUT, records)
    silent = dataclasses.replace(LAYOUT, network_of=None)
    with pytest.raises(DataError, match="its layout does not say which runs share"):
        judge(silent, records)


def test_rival_table_shows_difference_interval_p_and_verdict(cells):
    table = tables.rival_table(LAYOUT, list(cells.values()))
    numbers = ["difference", "95 % interval", "p", "verdict"]
    assert list(table) == ["block", "column", "method", "against", *numbers]
    assert set(table["against"]) == {"dense"}
    lines = {line[2]: line for line in table.values.tolist()}
    low, high = cells["cma-es"].against_rival.interval
    interval = f"+{low:.4f} to +{high:.4f}".replace("0.", ".")
    p_value = f"{cells['cma-es'].against_rival.p_holm:.3f}"[1:]
    assert lines["CMA-ES"][4:] == ["+.0360", interval, p_value, "better"]
    assert lines["offsets"][4:] == ["+.0460", "+.0419 to +.0501", "<.001", "better"]


def test_a_row_may_have_a_rival_of_its_own():
    rows = [
        dataclasses.replace(row, rival_row="offsets") if row.name == "cma-es" else row
        for row in LAYOUT.rows
    ]
    layout = dataclasses.replace(LAYOUT, rows=tuple(rows))
    table = tables.rival_table(layout, judge(layout, RECORDS))
    lines = {line[2]: line for line in table.values.tolist()}
    assert (lines["CMA-ES"][3], lines["offsets"][3]) == ("offsets", "dense")
    gain = VALUES["offsets"][0] - sum(VALUES["cma-es"]) / len(VALUES["cma-es"])
    assert float(lines["CMA-ES"][4]) == pytest.approx(gain, abs=1e-4)


def test_rival_verdicts_follow_costs_not_values():
    def verdicts(values):
        records = [
            make_record("dense", 0, [0.60, 0.61, 0.62], column="a9a/f1"),
            make_record("metricopt", 0, values, column="a9a/f1"),
        ]
        table = tables.rival_table(LAYOUT, judge(LAYOUT, records))
        return table[["difference", "p", "verdict"]].values.tolist()

    assert verdicts([0.50, 0.51, 0.521]) == [["-.0997", "<.001", "worse"]]
    assert verdicts([0.61, 0.60, 0.62])[0][2] == "not shown"
    assert verdicts([0.60, 0.61, 0.621])[0][2] == "equal within .0020"
    records = [make_record("dense", 0, [0.2]), make_record("metricopt", 0, [0.1])]
    table = tables.rival_table(LAYOUT, judge(LAYOUT, records))
    assert table.values.tolist()[0][4:] == ["+.1000", "·", "·", "not tested"]


def test_page_names_the_unit_and_the_rival(contents):
    page = contents["table.md"]
    assert "Tests: t-tests by pairs where both rows are fine-tuning runs" in page
    assert "replicate" not in page
    (spread,) = [line for line in page.splitlines() if line.startswith("- Spread: ")]
    assert spread.startswith(
        "- Spread: over meta-tests, the fine-tuning runs or searches of one network on "
        "one test split."
    )
    assert spread.endswith("A row that is a single network has no spread.")
    assert "## Against another method" in page.splitlines()
    assert "Spread: over meta-tests, the fine-tuning runs" in contents["table.tex"]


def test_csv_follows_the_unit(contents):
    head, *lines = (line.split(",") for line in contents["table.csv"].splitlines())
    found = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    counts = {row: found[row]["n"] for row in ("offsets", "cma-es", "metricopt")}
    assert counts == {"offsets": "1", "cma-es": "2", "metricopt": "4"}
    assert {line["n_of"] for line in found.values()} == {"meta-test"}
    assert float(found["cma-es"]["std"]) == pytest.approx(0.004 / math.sqrt(2))
    low, high = (float(found["cma-es"][f"cost_gain_{end}"]) for end in ("low", "high"))
    test = ttest_ind(VALUES["loss-only"], VALUES["cma-es"], equal_var=False)
    assert (low, high) == pytest.approx(tuple(test.confidence_interval()))


def test_equal_queries_table_of_single_and_several_meta_tests():
    _, _, title, *tables_of = equal_queries(LAYOUT.fitted(RECORDS), RECORDS)
    assert title.endswith("MCR ↓")
    lines = {line[0]: line[1:] for line in cells_in([None, None, *tables_of])}
    assert lines["offsets"] == [".2000 / .2100", ".1500 / .1600"]
    assert lines["MetricOpt"][0] == ".1805±.0013 / .1805"
    main = tables.main_table(LAYOUT, judge(LAYOUT, RECORDS), LAYOUT.blocks[0])
    assert main.set_index("method").loc["offsets"]["queries"] == "1,200"


def test_printed_deviations_stand_beside_ours():
    column = dataclasses.replace(MCR, paper_column="cifar10/mcr")
    row = make_row("metricopt", "MetricOpt", paper_row="metricopt-sgd")
    layout = dataclasses.replace(
        LAYOUT,
        paper_table="Table 1",
        columns=(column,),
        rows=(LAYOUT.rows[1], row),
        threshold_shift_row=None,
        rival_row=None,
    )
    records = [make_record("metricopt", 0, [0.0670, 0.0676])]
    cells = judge(layout, records)
    table = tables.paper_table(layout, cells).set_index("method")
    ours = [".0673±.0004 (2)", ".0663±.0005", "+.0010", "short of it by .0010"]
    assert table.loc["MetricOpt"].tolist()[2:] == ours
    rival = table.loc["adaptive loss alignment (ALA)"].tolist()
    assert rival[2:4] == ["not built yet", ".0679±.0007"]
    assert len(table) == 11
    main = tables.main_table(layout, cells, layout.blocks[0]).values.tolist()
    assert ["paper: L2T-DLF", "", ".0695", ""] in main
    assert ["paper: MetricOpt (learned)", "", ".0658±.0006", ""] in main
