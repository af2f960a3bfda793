"""Queries for the test cost of CMA-ES: goals, what entries need, means over goals."""

import dataclasses

import pytest

from benchmarks.report.layout import Block
from benchmarks.report.sections.queries import (
    QUERIES_TO_REACH,
    REACH_LEGEND,
    Effort,
    goals,
    queries_to_reach,
)
from tests.benchmarks.report.report_cases import (
    F1,
    MCR,
    cells_in,
    headings_in,
    make_layout,
    make_record,
    make_row,
    page_of,
    placed,
)

LAYOUT = make_layout(
    (
        make_row("untouched", compared=False),
        make_row("prior", "prior correction", sees="outputs and labels"),
        make_row("cma-es", "CMA-ES", sees="metric values"),
        make_row("metricopt", "MetricOpt", sees="loss gradients"),
        make_row(
            "metricopt-q200",
            "MetricOpt, 200 queries",
            sees="loss gradients",
            variant_of="metricopt",
            budget=200,
        ),
    ),
    (MCR, F1),
    blocks=(Block("balanced", "Balanced"), Block("natural", "Natural")),
    untouched_row="untouched",
    query_budgets=(100, 500),
)


def _search(row, *passed, queries, replicate=0, column=MCR.name, **fields):
    """A run of one search, with points (queries, value on test)."""
    trace = [(0, at, [value], [value]) for at, value in passed]
    final = [passed[-1][1]]
    fields = {"queries": queries, "trace": trace, "column": column} | fields
    return make_record(row, replicate, final, **fields)


UNTOUCHED = make_record("untouched", 0, [0.30], queries=0)
CMA = _search("cma-es", (10, 0.28), (100, 0.24), (400, 0.20), (900, 0.10), queries=900)
RECORDS = [
    UNTOUCHED,
    CMA,
    make_record("prior", 0, [0.19], queries=0),
    make_record("metricopt-q200", 0, [0.22], queries=200),
    make_record("metricopt", 0, [0.20], queries=1000),
]
# Higher is better here; CMA-ES makes 300 queries in all.
OTHERS = [
    make_record("untouched", 0, [0.5], column=F1.name, queries=0),
    _search("cma-es", (10, 0.5), (150, 0.7), queries=300, column=F1.name),
    make_record("prior", 0, [0.6], column=F1.name, queries=0),
    make_record("metricopt", 0, [0.69], column=F1.name, queries=1200),
]


def test_a_goal_is_what_cma_es_has_at_500_queries():
    (goal,) = goals(LAYOUT, RECORDS)
    assert (goal.block.name, goal.column) == ("balanced", MCR)
    assert (goal.value, goal.queries) == (0.20, 500)
    assert goal.efforts == {
        "prior": Effort(0.0, 0),
        "cma-es": Effort(400.0, 900),
        "metricopt": Effort(1000.0, 1000),
    }
    times = [goal.times_fewer(entry) for entry in goal.efforts]
    assert times == [500.0, 500 / 400, 0.5]


def test_a_shorter_search_counts_with_all_it_made():
    (goal,) = goals(LAYOUT, OTHERS)
    assert (goal.value, goal.queries) == (0.7, 300)
    assert goal.efforts == {
        "prior": Effort(None, 0),
        "cma-es": Effort(150.0, 300),
        "metricopt": Effort(None, 1200),
    }
    # What never gets there counts with what it spent, but never as fewer queries.
    assert [goal.times_fewer(entry) for entry in goal.efforts] == [1.0, 2.0, 0.25]


def test_nothing_is_to_be_reached_where_cma_es_gains_no_more_than_the_margin():
    margin = dataclasses.replace(MCR, margin=0.11)
    layout = dataclasses.replace(LAYOUT, columns=(margin, F1))
    assert goals(layout, RECORDS) == []
    found = goals(layout, [*RECORDS, *OTHERS])
    assert [goal.column for goal in found] == [F1]


@pytest.mark.parametrize(
    "changes",
    [{"untouched_row": None}, {"query_budgets": ()}, {"rows": LAYOUT.rows[:2]}],
)
def test_layouts_without_a_reference_have_no_goal(changes):
    layout = dataclasses.replace(LAYOUT, **changes)
    known = [r for r in RECORDS if r.spec.row in layout.row_names]
    assert goals(layout, known) == []
    assert QUERIES_TO_REACH not in page_of(layout, known)


def test_no_goal_before_the_first_point_of_cma_es_or_without_the_untouched_network():
    late = _search("cma-es", (600, 0.2), (900, 0.1), queries=900)
    assert goals(LAYOUT, [UNTOUCHED, late]) == goals(LAYOUT, RECORDS[1:]) == []


def test_all_means_are_over_the_replicates_of_cma_es():
    more = [
        make_record("untouched", 1, [0.0], queries=0),
        make_record("metricopt", 1, [0.0], queries=1000),
        make_record("prior", 1, [1.0], queries=0),
    ]
    (goal,) = goals(LAYOUT, [*RECORDS, *more])
    assert goal.efforts == goals(LAYOUT, RECORDS)[0].efforts
    # Neither runs of other replicates nor failed ones reach anything.
    failed = make_record("metricopt", 0, [], status="diverged", queries=40)
    for record in (more[1], failed):
        (goal,) = goals(LAYOUT, [UNTOUCHED, CMA, record])
        assert list(goal.efforts) == ["cma-es"]


def test_a_line_tells_every_goal_an_arm_was_run_for():
    others = [record for record in OTHERS if record.spec.row != "prior"]
    section = queries_to_reach(LAYOUT, [*RECORDS, *others])
    ends = ["reached", "times fewer, reached", "times fewer, all"]
    headings = ["A9A MCR ↓", "A9A F1 ↑"]
    assert headings_in(section) == ["method", "sees", *headings, *ends]
    lines = cells_in(section)
    # MetricOpt: half as few queries where it reached, a quarter elsewhere.
    assert [[label, *rest] for label, _, *rest in lines] == [
        ["prior correction", "0", "", "1 of 1", "500.00", "500.00"],
        ["CMA-ES", "400", "150", "2 of 2", "1.58", "1.58"],
        ["MetricOpt", "1,000", "·", "1 of 2", "0.50", "0.35"],
    ]
    assert [line[1] for line in lines] == [row.sees for row in LAYOUT.rows[1:4]]


def test_the_page_has_the_section_after_equal_queries():
    page = page_of(LAYOUT, [*RECORDS, *OTHERS])
    before, _, section = page.partition(f"\n{QUERIES_TO_REACH}\n\n")
    assert "\n## At equal queries\n" in before
    assert section.startswith(REACH_LEGEND)
    table = section.partition("\n## ")[0]
    assert "A9A MCR ↓ |" in table
    assert "| prior correction" in table
    assert "| untouched" not in table


def test_blocks_are_named_where_there_are_several():
    natural = [placed(record, block="natural") for record in OTHERS]
    section = queries_to_reach(LAYOUT, [*RECORDS, *natural])
    assert headings_in(section)[2:4] == ["balanced A9A MCR ↓", "natural A9A F1 ↑"]
    unsaid = tuple(dataclasses.replace(row, sees="") for row in LAYOUT.rows)
    layout = dataclasses.replace(LAYOUT, rows=unsaid)
    section = queries_to_reach(layout, RECORDS)
    assert headings_in(section)[:2] == ["method", "A9A MCR ↓"]
