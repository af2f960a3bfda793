"""What the arm of a row sees: in layouts, tables, legends and figures."""

import dataclasses

from benchmarks.report import remarks, tables
from benchmarks.report.cells import judge
from benchmarks.rows.contract import SEES
from tests.benchmarks.report.report_cases import (
    ARMS,
    BALANCED,
    LAYOUT,
    MCR,
    page_of,
)

WORDS = {"shift": "outputs and labels", "metricopt": "loss gradients"}
ROWS = tuple(dataclasses.replace(r, sees=WORDS.get(r.name, "")) for r in LAYOUT.rows)
TOLD = dataclasses.replace(LAYOUT, rows=ROWS, columns=(MCR,))


def test_the_main_table_says_what_rows_see_but_those_of_the_paper():
    table = tables.main_table(TOLD, judge(TOLD, ARMS), BALANCED)
    assert list(table)[:3] == ["method", "sees", "A9A MCR ↓"]
    found = dict(zip(table["method"], table["sees"], strict=True))
    told = {row: found.pop(row) for row in ("threshold shift", "MetricOpt")}
    assert told == {
        "threshold shift": "outputs and labels",
        "MetricOpt": "loss gradients",
    }
    assert found
    assert set(found.values()) == {""}


def test_a_layout_that_tells_nothing_has_no_such_column():
    table = tables.main_table(LAYOUT, judge(LAYOUT, ARMS), BALANCED)
    assert list(table)[:2] == ["method", "A9A MCR ↓"]
    assert "sees" not in remarks.legend(LAYOUT)


def test_the_legend_explains_the_words_that_occur_most_hidden_first():
    legend = remarks.legend(TOLD)
    places = [legend.find(f" `{word}`: ") for word in SEES]
    assert [place > 0 for place in places] == [False, True, True, False, False, False]
    assert legend.find("`sees`: ") < places[1] < places[2]
    assert set(remarks.SEEN) == set(SEES)
    page = page_of(TOLD, ARMS)
    assert legend in page
