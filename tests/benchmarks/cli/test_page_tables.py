from dataclasses import replace

import pytest

from benchmarks.cli.page_tables import first_table, unseen_table, whole_table
from benchmarks.experiments.registry import find_experiment
from benchmarks.runs.spec import Unit
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
    return {(metric, method): values for metric, method, *values in cells}


def test_rows_by_hand(records):
    rows = _rows(first_table(LAYOUT, records))
    error, f1 = "a9a MCR ↓", "a9a F ↑"
    budgets = ["10", "20", "50", "150", "500", "1,500", "5,000"]
    assert rows["metric", "after"] == [f"{queries} queries" for queries in budgets]
    metricopt = ["·", "·", "·", ".1900±.0200", "·", "·", ".1700±.0141"]
    assert rows[error, "MetricOpt (SGD)"] == metricopt
    held, later, final = ".3000±.0000", ".2000±.0000", ".1500±.0707"
    assert rows[error, "CMA-ES"] == ["·", "·", held, held, held, later, final]
    assert rows[error, "random search"] == ["·"] * 7
    assert rows[f1, "CMA-ES"] == ["·", "·", *[".6500±.0707"] * 5]
    assert rows[f1, "MetricOpt (SGD)"] == ["·"] * 7


def test_data_replicates_and_references_are_told(records):
    error, f1 = first_table(LAYOUT, records).splitlines()[-2:]
    assert error == (
        "- a9a MCR ↓ (a9a-sample, 1-3 replicates), to compare with: CE, untouched (phi "
        "= 0) .4200±.0141; CE fine-tune, last step ·; threshold shift .1500; prior "
        "correction ·."
    )
    assert f1.startswith("- a9a F ↑ (a9a-sample, 2 replicates), to compare with: CE")


def test_a_table_without_runs_is_refused(records):
    with pytest.raises(DataError, match="no finished run of a search in 'a9a/mcr'"):
        first_table(LAYOUT, [r for r in records if "/f1" in r.spec.column])
    with pytest.raises(DataError, match="no finished run of a search in 'a9a/f1' yet"):
        first_table(LAYOUT, [r for r in records if "/mcr" in r.spec.column])


def test_black_boxes_by_hand():
    layout = find_experiment("unseen-images").layout("local")
    place = {"block": "small", "column": "cifar10/kappa", "metric": "kappa"}
    searched = {"queries": 150, "trace": _trace({15: 0.3, 100: 0.4})}
    records = [
        *make_arm("cross-entropy", [0.2], **place),
        *make_arm("metricopt-outputs", [0.5], queries=15, **place),
        *make_arm("cma-es", [0.4], **searched, **place),
        *make_arm("cross-entropy", [0.9], block="resnet32", column="cifar10/mcr"),
    ]
    _, _, line = unseen_table(layout, records).splitlines()
    label, *values = (text.strip() for text in line.strip("|").split("|"))
    assert label == "small network: Cohen's kappa ↑"
    assert values == [".2000", ".5000", ".3000", ".3000", ".4000"]


def test_a_whole_table_by_hand():
    """A line has all metrics of the same runs; rows without a run show none."""
    layout = find_experiment("table5").layout("local")
    place = {"block": "recall", "column": "cars196-sop-format", "metric": "mean-recall"}
    runs = make_arm("cma-es", [0.4], queries=380, also=(Unit("recall@1"),), **place)
    records = [replace(r, test=r.test | {"recall@1": (0.25,)}) for r in runs]
    lines = [
        [text.strip() for text in line.strip("|").split("|")]
        for line in whole_table(layout, records).splitlines()
    ]
    assert lines[0][:4] == ["loss", "method", "queries", "R@1 ↑"]
    (found,) = [line for line in lines if line[:2] == ["recall", "CMA-ES"]]
    assert found == ["recall", "CMA-ES", "380", ".2500", "·", "·", ".4000", "·"]
    assert len(lines) == 2 + 1
