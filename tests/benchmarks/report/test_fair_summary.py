"""The fair summary, from records and numbers made by hand."""

import pytest

from benchmarks.report.fair_summary import fraction, matches, places, standings
from metricopt.errors import DataError
from tests.benchmarks.report.report_cases import (
    F1,
    MCR,
    make_arm,
    make_layout,
    make_row,
)

OUTPUTS = "outputs and labels"
LAYOUT = make_layout(
    (
        make_row("untouched", "untouched network"),
        make_row("search", "a search", sees="metric values"),
        make_row("ours", "ours", sees=OUTPUTS),
        make_row(
            "ours-q10",
            "ours, 10 queries",
            sees=OUTPUTS,
            variant_of="ours",
            budget=10,
        ),
        make_row("free", "a free shift", sees=OUTPUTS),
        make_row("ceiling", "knows the formula", sees="formula"),
        make_row("trained", "trains the network"),
        make_row("elsewhere", "on another network", sees=OUTPUTS),
        make_row("once", "one column only", sees=OUTPUTS),
    ),
    (MCR, F1),
    title="Table 3",
    untouched_row="untouched",
)
OTHER = {"data": {"variant": "a9a-sample", "theta": "another"}}


def _searched(column, at_10, at_50, final):
    trace = [(0, q, [v], [v]) for q, v in ((10, at_10), (50, at_50))]
    return make_arm("search", [final] * 2, column=column, queries=5000, trace=trace)


@pytest.fixture
def records():
    # Two replicates are shared: the third of the untouched network must not count.
    return [
        *make_arm("untouched", [0.30, 0.32, 0.90]),
        *_searched("a9a/mcr", 0.28, 0.10, 0.05),
        *make_arm("ours", [0.12, 0.14], queries=15),
        *make_arm("ours-q10", [0.20, 0.20], queries=10),
        *make_arm("free", [0.20, 0.22]),
        *make_arm("ceiling", [0.01, 0.01]),
        *make_arm("trained", [0.01, 0.01]),
        *make_arm("elsewhere", [0.01, 0.01], **OTHER),
        *make_arm("once", [0.01, 0.01]),
        *make_arm("untouched", [0.60, 0.62], column="a9a/f1"),
        *_searched("a9a/f1", 0.605, 0.61, 0.70),
        *make_arm("ours", [0.611, 0.611], column="a9a/f1", queries=15),
        *make_arm("ours-q10", [0.61, 0.61], column="a9a/f1", queries=10),
        *make_arm("free", [0.50, 0.50], column="a9a/f1"),
        *make_arm("elsewhere", [0.99, 0.99], column="a9a/f1", **OTHER),
    ]


def _standings(records, queries):
    group = places(LAYOUT, records, "balanced", ["a9a/mcr", "a9a/f1"])
    return standings(matches(group, queries))


def test_numbers_by_hand(records):
    """At 20 queries: costs .31 untouched, .13 ours, .21, .28; F .61, .611, .50, .605.

    F leaves ours a gain of .001, so that only the error has room.
    """
    assert [standing.texts for standing in _standings(records, 20)] == [
        ["ours", OUTPUTS, "15", ".0000", "100 %", "100 %", "100 %", ".0000"],
        ["a search", "metric values", "10", ".0780", "17 %", "17 %", "17 %", ".0050"],
        ["a free shift", OUTPUTS, "0", ".0955", "56 %", "56 %", "56 %", ".1100"],
    ]


def test_a_larger_budget_reads_later_points(records):
    """At 50 the search has .10, the best error, and is .001 short of ours in F."""
    search, ours, _ = _standings(records, 50)
    assert (search.row.name, search.queries) == ("search", 50)
    assert search.regret == pytest.approx((0 + 0.001) / 2)
    assert ours.regret == pytest.approx((0.13 - 0.10) / 2)
    assert ours.reached == pytest.approx([0.18 / 0.21])
    assert (ours.queries, ours.harm) == (15, 0)


def test_a_row_tuned_for_the_budget_counts_for_its_arm(records):
    """At 10 queries ours is its row of 10, with an error of .20, and free has .21."""
    found = {each.row.name: each for each in _standings(records, 10)}
    assert found["ours"].queries == 10
    assert found["ours"].regret == 0
    assert found["free"].reached == pytest.approx([0.10 / 0.11])


def test_shares_over_several_columns(records):
    """F has room of .05: ours reaches 100 % and 20 %, the free shift 56 % and 100 %."""
    later = [r for r in records if r.spec.column != "a9a/f1"]
    later += make_arm("untouched", [0.60, 0.62], column="a9a/f1")
    later += make_arm("ours", [0.62, 0.62], column="a9a/f1", queries=15)
    later += make_arm("free", [0.66, 0.66], column="a9a/f1")
    ours, free = _standings(later, 20)
    assert ours.texts[3:] == [".0200", "60 %", "60 %", "20 %", ".0000"]
    assert free.texts[3:] == [".0400", "78 %", "78 %", "56 %", ".0000"]


def test_without_room_no_share_is_told(records):
    level = [r for r in records if r.spec.column == "a9a/f1"]
    group = places(LAYOUT, level, "balanced", ["a9a/f1"])
    best, *_ = standings(matches(group, 20))
    assert best.texts[4:7] == ["·", "·", "·"]


def test_a_column_without_the_untouched_network_is_refused(records):
    rest = [r for r in records if r.spec.row != "untouched"]
    with pytest.raises(DataError, match="no untouched network in 'a9a/mcr' yet"):
        places(LAYOUT, rest, "balanced", ["a9a/mcr"])


def test_an_unknown_column_is_named(records):
    with pytest.raises(DataError, match="no column 'a9a/none'; known: a9a/mcr, a9a/f1"):
        places(LAYOUT, records, "balanced", ["a9a/mcr", "a9a/none"])


@pytest.mark.parametrize(
    ("value", "text"), [(0.0532, ".0532"), (0.0, ".0000"), (-0.02, "-.0200")]
)
def test_fractions_have_no_leading_zero(value, text):
    assert fraction(value) == text
