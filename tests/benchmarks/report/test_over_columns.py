"""Rows over all columns of some blocks: shares and harm by hand, on made-up records."""

from dataclasses import replace

import pytest

from benchmarks.report.figures.over_columns import regret_over_queries
from benchmarks.report.page import build
from benchmarks.report.sections.over_columns import (
    OVER_COLUMNS,
    standing_lines,
    standings_by_group,
)
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.runs.record_cases import make_record
from tests.benchmarks.tables.test_layouts import specs_of

FOUND = {"untouched": 0.5, "metricopt-outputs": 0.7, "logit-adjustment": 0.6}


@pytest.fixture
def tuned():
    return find_experiment("tuned").layout("smoke"), [
        make_record(
            spec,
            data={"variant": spec.block},
            queries=spec.budget.queries,
            test={unit.label: [FOUND.get(spec.row, 0.4)] for unit in spec.metrics},
        )
        for spec in specs_of("tuned", "smoke")
    ]


def test_shares_regret_and_harm_by_hand(tuned):
    lines = standing_lines(*tuned)
    two = {line[1]: line[3:] for line in lines if line[0] == "two classes"}
    assert two["MetricOpt on outputs (ours)"] == (
        ["15", ".0000", "100 %", "100 %", "100 %", ".0000", "0 of 1"]
    )
    assert two["logit adjustment"][1:] == [
        ".1000",
        "50 %",
        "50 %",
        "50 %",
        ".0000",
        "0 of 1",
    ]
    assert two["threshold grid"][-2:] == [".1000", "1 of 1"]
    assert two["threshold grid"][2] == "-50 %"
    assert [line[1] for line in lines[:2]] == [
        "MetricOpt on outputs (ours)",
        "logit adjustment",
    ]
    assert {line[0] for line in lines} == {"two classes", "several classes"}


def test_a_page_has_it_where_its_layout_asks_for_it(tuned):
    layout, records = tuned
    page = build(layout, records)["table.md"].decode()
    assert OVER_COLUMNS in page
    without = build(replace(layout, summed={}), records)["table.md"].decode()
    assert OVER_COLUMNS not in without


def test_a_figure_has_a_point_without_error_bars_for_every_row(tuned):
    figure = regret_over_queries(*tuned)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["two classes", "several classes"]
    for panel in figure.axes:
        found = standings_by_group(*tuned)[panel.get_title()]
        points = {line.get_label(): line.get_xydata()[0] for line in panel.lines}
        assert points == {
            each.row.label: pytest.approx([max(1, each.queries), each.regret])
            for each in found
        }
        assert not panel.containers and not panel.collections
    (legend,) = figure.legends
    shown = [type(handle).__name__ for handle in legend.legend_handles]
    assert set(shown) == {"Line2D"}
    # What is drawn later hides nothing that was drawn before.
    inside = {line.get_markerfacecolor()[1] for line in figure.axes[0].lines}
    assert max(inside) < 1
