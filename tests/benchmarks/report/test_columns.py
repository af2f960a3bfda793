"""Columns: direction and unit of their metric, and several columns of one run."""

import dataclasses

import pytest

from benchmarks.report import tables
from benchmarks.report.cells import judge
from benchmarks.report.columns import Column, Reading
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError
from metricopt.metrics.base import METRICS
from metricopt.metrics.counted import MisclassificationRate
from tests.benchmarks.report.report_cases import F1, LAYOUT, MCR, make_record, page_of
from tests.benchmarks.runs.record_cases import make_trace

LEGACY = Column("a9a/legacy", "A9A legacy", Unit("jaccard-legacy"), runs="a9a/jac")
JAC = Column(
    "a9a/jac",
    "A9A JAC",
    Unit("jaccard"),
    paper_column="a9a/jac",
    compare_metric="jaccard-legacy",
)
TWO = dataclasses.replace(LAYOUT, columns=(JAC, LEGACY))


@pytest.fixture
def percent(monkeypatch):
    """Names of a metric in percent, of either direction."""

    class Errors(MisclassificationRate):
        unit, high = "percent", 100.0

    class Hits(Errors):
        higher_is_better = True

    for name, kind in (("errors", Errors), ("hits", Hits)):
        monkeypatch.setitem(METRICS._units, name, kind)


def _record(row, jaccard, legacy, **fields):
    values = {"jaccard": jaccard, "jaccard-legacy": legacy}
    also = (Unit("jaccard-legacy"),)
    return make_record(
        row, 0, jaccard, column="a9a/jac", also=also, test=values, **fields
    )


RECORDS = [
    _record("loss-only", [0.5, 0.6], [0.7, 0.8]),
    _record("metricopt", [0.61, 0.63], [0.85, 0.86]),
]


def test_direction_and_unit_are_those_of_the_metric(percent):
    assert (MCR.heading, F1.heading) == ("A9A MCR ↓", "A9A F1 ↑")
    assert (MCR.sign, F1.sign) == (1.0, -1.0)
    assert (MCR.unit, Column("x", "X", Unit("hits")).unit) == ("fraction", "percent")
    assert MCR.axis_label == "A9A MCR\n(fraction, lower is better)"
    assert (MCR.cost_label, F1.cost_label) == ("A9A MCR", "1 - A9A F1")
    assert Column("x", "X", Unit("hits")).cost_label == "100 - X"
    # Costs are lower for the better value.
    assert MCR.cost(0.2) == 0.2
    assert F1.cost(0.75) == 0.25
    assert Column("x", "X", Unit("hits")).cost(90.0) == 10.0


def test_values_are_printed_in_their_unit(percent):
    printed = [MCR.format(x) for x in (0.15321, -0.0012, 1.0, 0.0)]
    assert printed == [".1532", "-.0012", "1.0000", ".0000"]
    hundred = Column("x", "X", Unit("errors"))
    assert [hundred.format(x) for x in (92.306, 0.5)] == ["92.31", "0.50"]
    assert [MCR.signed(x) for x in (0.1, 0.0, -0.1)] == ["+.1000", "+.0000", "-.1000"]
    # What rounds to zero has no minus.
    assert (MCR.format(-0.00004), MCR.signed(-0.00004)) == (".0000", "+.0000")
    assert hundred.signed(-0.004) == "+0.00"
    # Nats have as many decimals as fractions.
    column = Column("a9a/log-loss", "A9A log loss", Unit("log-loss"))
    assert (column.format(0.25), column.heading) == ("0.2500", "A9A log loss ↓")
    assert MCR.summary([]) == "·"
    assert MCR.summary([0.1]) == ".1000"
    assert MCR.summary([0.1, 0.2]) == ".1500±.0707"
    assert MCR.spread(0.1, None) == ".1000"


@pytest.mark.parametrize(
    ("metric", "paper", "text"),
    [
        (
            "errors",
            "a9a/mcr",
            "is in percent, and the paper prints fraction",
        ),
        ("no-such", None, r"unknown metric 'no-such'; known: .*mcr"),
    ],
)
def test_units_are_known_and_those_of_the_paper(percent, metric, paper, text):
    with pytest.raises(ConfigError, match=text):
        column = Column("x", "X", Unit(metric), paper_column=paper)
        dataclasses.replace(LAYOUT, columns=(column,))


def test_one_run_fills_several_columns():
    cells = {(c.row.name, c.column.name): c for c in judge(TWO, RECORDS)}
    assert len(cells) == 4
    assert cells["metricopt", "a9a/jac"].mean == pytest.approx(0.62)
    assert cells["metricopt", "a9a/legacy"].mean == pytest.approx(0.855)
    assert cells["metricopt", "a9a/legacy"].against_base.gain == pytest.approx(0.105)
    table = tables.long_table(list(cells.values()))
    assert set(table["metric"]) == {"jaccard", "jaccard-legacy"}
    page = page_of(TWO, RECORDS)
    assert ".6200±.0141 (2)" in page and ".8550±.0071 (2)" in page


def test_a_missing_value_of_one_metric_troubles_its_column_alone():
    torn = [*RECORDS[:1], _record("metricopt", [0.6, 0.6], [0.8, None])]
    cells = {(c.row.name, c.column.name): c for c in judge(TWO, torn)}
    assert cells["metricopt", "a9a/jac"].trouble == ""
    assert cells["metricopt", "a9a/legacy"].trouble == "failed 1/1"


def test_another_metric_may_be_compared_with_the_paper():
    (cell,) = [c for c in judge(TWO, RECORDS[1:]) if c.column == JAC]
    assert cell.compared == pytest.approx(0.855)
    assert cell.paper_difference == pytest.approx(0.855 - 0.8691)
    line = tables.paper_table(TWO, [cell]).values.tolist()[0]
    assert line[3:6] == [".8550 (legacy)", ".8691", "-.0141"]


def test_a_column_of_a_metric_its_runs_lack_is_refused():
    wrong = Column("a9a/f1", "F1", Unit("f1"), runs="a9a/jac")
    layout = dataclasses.replace(LAYOUT, columns=(JAC, wrong))
    text = "column 'a9a/f1' shows f1, and its runs were judged by jaccard, jaccard-leg"
    with pytest.raises(DataError, match=text):
        judge(layout, RECORDS)


def test_a_reading_takes_its_own_metric_and_counts_as_told():
    points = make_trace("jaccard", (0, 5, None, [0.1, 0.3]))
    record = dataclasses.replace(RECORDS[0], trace=points)
    mean, each = Reading(LEGACY), Reading(LEGACY, replicated=False)
    assert mean.finals(record) == pytest.approx((0.75,))
    assert each.finals(record) == (0.7, 0.8)
    assert each.finals(record, "observe") == ()
    assert each.passed(record, record.trace[0]) == ()
    assert Reading(JAC).passed(record, record.trace[0]) == pytest.approx((0.2,))
    assert Reading(JAC).passed(record, record.trace[0], "observe") == ()
