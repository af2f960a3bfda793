"""Figures over metric queries: legends by what entries see, references, marks."""

import dataclasses

import pytest

from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.panels import row_styles
from benchmarks.report.figures.query_curves import queries_to_reach, query_curves
from tests.benchmarks.report.report_cases import F1, MCR, make_record, make_row
from tests.benchmarks.report.test_queries_to_reach import LAYOUT, OTHERS, RECORDS

BLOCK, NATURAL = LAYOUT.blocks
OBSERVE = "observe split (thin, hollow)"
UNSAID = dataclasses.replace(
    LAYOUT,
    rows=tuple(dataclasses.replace(row, sees="") for row in LAYOUT.rows),
    untouched_row=None,
)


def _legend(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def _points(panel):
    """Points by label and whether their marks are filled, where there are some."""
    found = {}
    for line in panel.get_lines():
        if len(line.get_xdata()) and line.get_linestyle() == "None":
            filled = line.get_markerfacecolor() != "none"
            key = (line.get_color(), filled)
            assert key not in found
            found[key] = line.get_xydata().tolist()
    return found


def test_the_legend_of_query_curves_groups_arms_by_what_they_see():
    figure = query_curves(LAYOUT, RECORDS, BLOCK)
    headed = ["sees metric values", "CMA-ES", "sees loss gradients", "MetricOpt"]
    assert _legend(figure) == ["untouched", OBSERVE, *headed]
    (legend,) = figure.legends
    bold = [t.get_text() for t in legend.get_texts() if t.get_fontweight() == "bold"]
    assert bold == ["sees metric values", "sees loss gradients"]


def test_arms_of_which_nothing_is_told_have_no_heading():
    legend = _legend(query_curves(UNSAID, RECORDS, BLOCK))
    assert legend == [OBSERVE, "CMA-ES", "MetricOpt"]
    some = (make_row("untouched"), make_row("prior", "prior correction"))
    layout = dataclasses.replace(LAYOUT, rows=(*some, *LAYOUT.rows[2:]))
    spent = make_record("prior", 0, [0.2], queries=7)
    legend = _legend(query_curves(layout, [*RECORDS[:2], spent], BLOCK))
    headed = ["sees metric values", "CMA-ES"]
    assert legend == ["untouched", OBSERVE, "prior correction", *headed]
    # Without observed values nothing thin is explained.
    records = [make_record("cma-es", 0, [0.2], queries=9, observe={})]
    assert _legend(query_curves(LAYOUT, records, BLOCK)) == headed


def test_query_curves_show_the_untouched_network_as_a_grey_line():
    figure = query_curves(LAYOUT, [*RECORDS, *OTHERS], BLOCK)
    lines = [
        next(line for line in panel.get_lines() if line.get_label() == "untouched")
        for panel in figure.axes
    ]
    assert [list(line.get_ydata()) for line in lines] == [[0.3, 0.3], [0.5, 0.5]]
    # Nothing but that line is no panel.
    assert query_curves(LAYOUT, RECORDS[:1], BLOCK) is None


def test_queries_to_reach_has_one_mark_per_arm_and_column():
    figure = queries_to_reach(LAYOUT, [*RECORDS, *OTHERS], BLOCK)
    (panel,) = figure.axes
    colours = {label: style[0] for label, style in row_styles(LAYOUT).items()}
    points = _points(panel)
    expected = {
        ("CMA-ES", True): [[400.0, 0], [150.0, 1]],
        ("MetricOpt", True): [[1000.0, 0]],
        ("MetricOpt", False): [[1200.0, 1]],
        # No query is drawn at 1; never there is drawn at the queries of CMA-ES.
        ("prior correction", True): [[1.0, 0]],
        ("prior correction", False): [[300.0, 1]],
    }
    assert points.keys() == {(colours[label], full) for label, full in expected}
    shifts = {"CMA-ES": -0.8 / 3, "MetricOpt": 0.0, "prior correction": 0.8 / 3}
    for (label, filled), found in expected.items():
        moved = [pytest.approx([x, y + shifts[label]]) for x, y in found]
        assert points[colours[label], filled] == moved
    names = [text.get_text() for text in panel.get_yticklabels()]
    assert names == [MCR.heading, F1.heading]
    assert _legend(figure) == [
        *("where CMA-ES is taken", "never reached (hollow)"),
        *("sees metric values", "CMA-ES"),
        *("sees loss gradients", "MetricOpt"),
        *("sees outputs and labels", "prior correction"),
    ]
    lines = [
        line.get_xydata().tolist()
        for line in panel.get_lines()
        if line.get_label() == "where CMA-ES is taken"
    ]
    assert lines == [[[500, -0.5], [500, 0.5]], [[300, 0.5], [300, 1.5]]]
    assert panel.get_xscale() == "log"


def test_queries_to_reach_is_drawn_for_blocks_with_something_to_reach():
    assert queries_to_reach(LAYOUT, RECORDS, NATURAL) is None
    assert queries_to_reach(UNSAID, RECORDS, BLOCK) is None
    drawn = draw_all(LAYOUT, RECORDS)
    assert [name for name in drawn if name.startswith("queries_to_reach")] == [
        "queries_to_reach-balanced"
    ]


def test_queries_to_reach_gets_higher_with_arms_and_columns():
    rows = [make_row(f"arm-{n}", f"arm {n}") for n in range(40)]
    layout = dataclasses.replace(LAYOUT, rows=(*LAYOUT.rows, *rows))
    records = [make_record(row.name, 0, [0.1], queries=9) for row in rows]
    low = queries_to_reach(LAYOUT, RECORDS, BLOCK).get_figheight()
    high = queries_to_reach(layout, [*RECORDS, *records], BLOCK).get_figheight()
    assert (low, high) == (5.0, pytest.approx(1.8 + 0.09 * 44))
