"""What one file outside the packages adds stands in tables and figures."""

from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import pytest

from benchmarks.arms.contract import run_arm
from benchmarks.problems.contract import make_pipeline
from benchmarks.report.cells import judge
from benchmarks.report.figures.query_curves import query_curves
from benchmarks.tables.registry import find_experiment
from benchmarks.tables.table import ADDITIONS
from metricopt.errors import ConfigError
from tests.benchmarks.runs.record_cases import make_record, make_trace
from tests.extensions.one_file import METRIC, RIVAL, UNITS
from tests.extensions.registered import registered

TABLES = ("table1", "table3", "mismatch")
ADDED = {
    "table1": {"flat/mcr"},
    "table3": {"digit-3/f1", f"digit-8/{METRIC}"},
    "mismatch": {"flat/mcr"},
}


@pytest.fixture(scope="module", autouse=True)
def units():
    with ExitStack() as stack:
        for unit in UNITS:
            stack.enter_context(registered(*unit))
        yield
    specs_of.cache_clear()


@cache
def specs_of(name):
    return find_experiment(name).specs("smoke", 2, True)


@pytest.mark.parametrize("name", TABLES)
def test_the_rival_is_a_row_of_every_column_that_searches(name):
    columns = {
        row: {spec.column for spec in specs_of(name) if spec.row == row}
        for row in (RIVAL, "adaptive-surrogates")
    }
    assert columns[RIVAL] == columns["adaptive-surrogates"] > ADDED[name]
    (row,) = [r for r in find_experiment(name).layout("smoke").rows if r.name == RIVAL]
    assert (row.label, row.sees) == ("half way", "loss gradients")
    assert row.base_row == "cross-entropy"


@pytest.mark.parametrize("name", TABLES)
def test_problem_and_metric_are_columns_with_the_rows_that_suit(name):
    layout = find_experiment(name).layout("smoke")
    assert ADDED[name] < {column.name for column in layout.columns}
    rows = {
        column: {spec.row for spec in specs_of(name) if spec.column == column}
        for column in ADDED[name]
    }
    assert all({"cross-entropy", "metricopt", RIVAL} < own for own in rows.values())
    softened = {column for column, own in rows.items() if "white-box" in own}
    assert softened == ADDED[name] - {f"digit-8/{METRIC}"}


@pytest.mark.parametrize("name", TABLES)
def test_query_figures_draw_what_was_added(name):
    layout, records = find_experiment(name).layout("smoke"), []
    for spec in specs_of(name):
        values = {unit.label: [0.5 - 0.1 * spec.replicate] for unit in spec.metrics}
        facts = {"data": {"variant": "none"}, "observe": values, "test": values}
        trace = make_trace(spec.metric.label, (0, 5, [0.4], [0.4]), (0, 9, None, [0.3]))
        records.append(make_record(spec, trace=trace, queries=9, **facts))
    cells = judge(layout.fitted(records), records)
    assert {c.column.name for c in cells if c.row.name == RIVAL} > ADDED[name]
    figure = query_curves(layout, records, layout.blocks[0])
    titles = {panel.get_ylabel().splitlines()[0] for panel in figure.axes}
    labels = {c.name: c.label for c in layout.columns}
    assert {labels[column] for column in ADDED[name]} < titles
    legend = {text.get_text() for each in figure.legends for text in each.get_texts()}
    assert "half way" in legend


def test_the_rival_runs_on_the_added_problem_and_metric():
    wanted = {"digit-3/f1", f"digit-8/{METRIC}"}
    runs = [s for s in specs_of("table3") if s.row == RIVAL and s.column in wanted]
    for spec in [spec for spec in runs if spec.replicate == 0]:
        chosen = run_arm(spec, make_pipeline(spec.pipeline, 0))
        assert chosen.queries == spec.budget.queries == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": "nowhere"}, "in a block of its table, one of .*; got nowhere"),
        ({"column": "other/f1"}, "in a column of its table, one of .*; got other/f1"),
    ],
)
def test_an_added_column_must_have_a_place_in_its_table(changes, message):
    (added,) = [unit for _, name, unit in UNITS if name == "digit-3"]

    def place(tier):
        return replace(added.place(tier), **changes)

    with (
        registered(ADDITIONS, "astray", replace(added, place=place)),
        pytest.raises(ConfigError, match=message),
    ):
        find_experiment("table3").layout("smoke")
