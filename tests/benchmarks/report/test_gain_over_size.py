"""Gain by the size of the observe split, drawn and told, from hand-written records."""

from dataclasses import replace

import pytest
from scipy.stats import t

from benchmarks.report.cells import judge
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.figures.gains import BAND, gain_over_size
from benchmarks.report.sections.gain_by_size import (
    GAIN_BY_SIZE,
    gain_by_size,
)
from tests.benchmarks.report.report_cases import (
    ARMS,
    LAYOUT,
    bars_of,
    cells_in,
    make_arm,
    page_of,
    placed,
)

OBSERVED = {"a9a/mcr": 200, "a9a/f1": 500}
SIZED = replace(LAYOUT, observed_of=lambda spec: OBSERVED[spec.column])
F1 = [
    *make_arm("loss-only", [0.5, 0.5, 0.5], column="a9a/f1"),
    *make_arm("shift", [0.4, 0.5, 0.6], column="a9a/f1"),
]


def test_marks_by_hand():
    (panel,) = gain_over_size(SIZED, [*ARMS, *F1]).axes
    found = bars_of(panel)
    assert set(found) == {"threshold shift", "MetricOpt"}
    assert [label.get_text() for label in panel.get_xticklabels()] == ["200", "500"]
    points, ends = found["threshold shift"]
    # Two marks at 200, one to either side; one at 500. F of .5 on average: no gain.
    assert points[0] == pytest.approx([-BAND / 4, 0.055])
    assert points[1] == pytest.approx([1.0, 0.0], abs=1e-12)
    half = t.ppf(0.975, 2) * 0.005 / 3**0.5
    assert ends[0] == pytest.approx([0.055 - half, 0.055 + half])
    half = t.ppf(0.975, 2) * 0.1 / 3**0.5
    assert ends[1] == pytest.approx([-half, half])
    ((x, gain),) = found["MetricOpt"][0]
    assert (x, gain) == pytest.approx((BAND / 4, 0.04))


def test_one_figure_for_all_blocks_where_a_layout_asks_for_it():
    natural = [placed(record, block="natural") for record in ARMS]
    figures = draw_all(SIZED, [*ARMS, *natural])
    assert "gain_over_size" in figures
    title = figures["gain_over_size"].get_suptitle()
    assert title.startswith("Table 3") and "all blocks" in title
    assert "gain_over_size" not in draw_all(LAYOUT, ARMS)
    assert gain_over_size(LAYOUT, ARMS) is None
    # Nor is there one without a tested row.
    assert gain_over_size(SIZED, make_arm("loss-only", [0.2, 0.3])) is None


def test_a_table_by_hand():
    records = [*ARMS, *F1, *make_arm("metricopt", [0.6, 0.4, 0.2], column="a9a/f1")]
    lines = cells_in(gain_by_size(SIZED, judge(SIZED, records)))
    # At 200 the error; at 500 F, which nothing raises on average.
    assert lines == [
        ["200", "threshold shift", "1", "1", "0", "+0.0550", "+0.0550", "100 %", "0 %"],
        ["200", "MetricOpt", "1", "1", "0", "+0.0400", "+0.0400", "73 %", "0 %"],
        ["500", "threshold shift", "1", "0", "0", "+0.0000", "+0.0000", "·", "33 %"],
        ["500", "MetricOpt", "1", "0", "0", "-0.1000", "-0.1000", "·", "67 %"],
    ]


def test_a_page_has_the_section_where_the_layout_tells_sizes():
    assert f"\n{GAIN_BY_SIZE}\n" in page_of(SIZED, ARMS)
    assert gain_by_size(LAYOUT, judge(LAYOUT, ARMS)) == []
