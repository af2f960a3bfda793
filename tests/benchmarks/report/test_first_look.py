"""The first look: lines of the same replicates, from hand-written records."""

from dataclasses import replace

import pytest

from benchmarks.report.figures.first_look import first_look
from benchmarks.report.layout import FirstLook
from tests.benchmarks.report.report_cases import LAYOUT, make_arm

LOOK = FirstLook(entry="shift", others=("metricopt",), columns={"a9a/mcr": "it pays"})
LOOKED = replace(LAYOUT, first_look=LOOK, untouched_row="loss-only")
TRACE = [(0, 10, [0.3], [0.3])]


def lines(records):
    figure = first_look(LOOKED, records, LOOKED.blocks[0])
    (panel,) = figure.axes
    names = [text.get_text() for text in panel.texts]
    return names, [line.get_ydata()[-1] for line in panel.lines], figure


def test_only_replicates_that_all_arms_have_are_drawn():
    records = [
        *make_arm("loss-only", [0.2, 0.4, 0.9]),
        *make_arm("shift", [0.1, 0.3, 0.9], queries=20, trace=TRACE),
        *make_arm("metricopt", [0.2, 0.3], queries=20, trace=TRACE),
    ]
    names, ends, figure = lines(records)
    assert set(names) == {"untouched", "threshold shift", "MetricOpt"}
    assert ends == pytest.approx([0.3, 0.25, 0.2])
    assert "2 replicates" in figure.get_suptitle()


def test_an_arm_without_records_takes_nothing_from_the_others():
    records = [
        *make_arm("loss-only", [0.2, 0.4]),
        *make_arm("shift", [0.1, 0.3], queries=20, trace=TRACE),
    ]
    names, ends, _ = lines(records)
    assert set(names) == {"untouched", "threshold shift"}
    assert ends == pytest.approx([0.3, 0.2])


def test_an_arm_that_needs_no_query_is_a_line_from_the_first():
    records = [
        *make_arm("loss-only", [0.2, 0.4]),
        *make_arm("shift", [0.1, 0.3], queries=20, trace=TRACE),
        *make_arm("metricopt", [0.25, 0.35]),
    ]
    figure = lines(records)[-1]
    free = figure.axes[0].lines[1]
    assert list(free.get_xdata()) == [1, 500]
    assert list(free.get_ydata()) == pytest.approx([0.3, 0.3])


def test_an_arm_that_needs_too_many_queries_is_left_out():
    late = [(0, 501, [0.3], [0.3])]
    records = [
        *make_arm("loss-only", [0.2, 0.4]),
        *make_arm("shift", [0.1, 0.3], queries=20, trace=TRACE),
        *make_arm("metricopt", [0.25, 0.35], queries=600, trace=late),
    ]
    names, _, _ = lines(records)
    assert set(names) == {"untouched", "threshold shift"}
    # Other layouts and blocks have no such figure.
    assert first_look(LAYOUT, records, LAYOUT.blocks[0]) is None
    assert first_look(LOOKED, records, LOOKED.blocks[1]) is None
