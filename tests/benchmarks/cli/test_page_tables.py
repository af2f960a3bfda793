import pytest

from benchmarks.cli.page_tables import first_table, unseen_table
from benchmarks.tables.registry import find_experiment
from metricopt.errors import DataError
from tests.benchmarks.report.report_cases import make_arm

LAYOUT = find_experiment("table3").layout("local")


def _trace(values):
    return [(0, queries, [value], [value]) for queries, value in values.items()]


@pytest.fixture
def records():
    searched = {"queries": 5000, "trace": _trace({50: 0.3, 1500: 0.2})}
    return [
        *make_arm("cross-entropy", [0.41, 0.43]),
        *make_arm("threshold-shift", [0.15], queries=700),
        *make_arm("cma-es", [0.1, 0.2], **searched),
        *make_arm("metricopt", [0.16, 0.18], queries=4900),
        *make_arm("metricopt-q150", [0.17, 0.21, 0.19], queries=150),
        *make_arm("cma-es", [0.6, 0.7], column="a9a/f1", queries=50),
        *make_arm("cma-es", [0.5], column="a9a/mcr", block="natural", queries=50),
    ]


def _rows(table):
    lines = [line.strip("| ").split("|") for line in table.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    return {method: values for method, *values in cells}


def test_rows_by_hand(records):
    rows = _rows(first_table(LAYOUT, records))
    budgets = ["10", "20", "50", "150", "500", "1,500", "5,000"]
    assert rows["a9a MCR ↓"] == [f"{queries} queries" for queries in budgets]
    metricopt = ["·", "·", "·", ".1900±.0200", "·", "·", ".1700±.0141"]
    assert rows["MetricOpt (SGD)"] == metricopt
    held, later, final = ".3000±.0000", ".2000±.0000", ".1500±.0707"
    assert rows["CMA-ES"] == ["·", "·", held, held, held, later, final]
    assert rows["portfolio of losses"] == ["·"] * 7


def test_data_replicates_and_references_are_told(records):
    assert first_table(LAYOUT, records).splitlines()[-1] == (
        "a9a-sample, 1-3 replicates. To compare with: CE, untouched (phi = 0) "
        ".4200±.0141; CE fine-tune, last step ·; prior correction ·; threshold grid ·; "
        "threshold shift .1500."
    )


def test_a_table_without_runs_is_refused(records):
    with pytest.raises(DataError, match="no finished run of a search in 'a9a/mcr'"):
        first_table(LAYOUT, [r for r in records if "/mcr" not in r.spec.column])


def test_black_boxes_by_hand():
    layout = find_experiment("unseen").layout("local")
    place = {"column": "a9a/kappa", "metric": "kappa"}
    searched = {"queries": 150, "trace": _trace({15: 0.3, 100: 0.4})}
    records = [
        *make_arm("cross-entropy", [0.2], **place),
        *make_arm("metricopt-outputs", [0.5], queries=15, **place),
        *make_arm("cma-es", [0.4], **searched, **place),
        *make_arm("cross-entropy", [0.9], block="natural", column="a9a/mcr"),
    ]
    _, _, line = unseen_table(layout, records).splitlines()
    label, *values = (text.strip() for text in line.strip("|").split("|"))
    assert label == "Cohen's kappa ↑"
    assert values == [".2000", ".5000", ".3000", ".3000", ".4000"]
