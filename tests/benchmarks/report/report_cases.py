"""Hand-written records and a small layout for the tests of tables and reports."""

import math
from dataclasses import replace

from benchmarks.report.cells import judge
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.page import build
from benchmarks.rows.contract import Row
from benchmarks.rows.controls import finetuned
from benchmarks.runs.spec import Unit
from tests.benchmarks.runs import record_cases

MCR = Column("a9a/mcr", "A9A MCR", Unit("mcr"), paper_column="a9a/mcr")
F1 = Column("a9a/f1", "A9A F1", Unit("f1"), paper_column="a9a/f1")
JAC = Column(
    "a9a/jac",
    "A9A JAC",
    Unit("jaccard"),
    paper_column="a9a/jac",
    not_comparable="another index",
)


def make_row(name, label="", base_row=None, **more):
    """A row of a layout; its label is its name if none is told."""
    return Row(name, label or name, base_row=base_row, **more)


def make_finetuned(name, label, base_row=None, **more):
    """A row of fine-tuning runs."""
    return finetuned(name, label, base_row=base_row, **{"compared": True, **more})


def make_layout(rows, columns=(), **more):
    """A layout of one block without words around its tables."""
    plain = {"title": "", "caption": "", "convention": ""}
    plain["blocks"] = (Block("balanced", "Balanced"),)
    return TableLayout(
        experiment="table3", rows=tuple(rows), columns=tuple(columns), **plain | more
    )


VARIANT = make_row(
    "metricopt-q50",
    "MetricOpt, 50 queries",
    base_row="loss-only",
    variant_of="metricopt",
    budget=50,
)
LAYOUT = TableLayout(
    experiment="table3",
    title="Table 3",
    caption="Two arms.",
    convention="class 1 is positive at threshold 0.5",
    blocks=(
        Block("balanced", "Balanced"),
        Block("natural", "Natural", not_comparable="other sampling"),
    ),
    rows=(
        make_row("loss-only", "loss only", paper_row="ce"),
        make_row("shift", "threshold shift", base_row="loss-only"),
        make_row("metricopt", "MetricOpt", base_row="loss-only", paper_row="metricopt"),
        VARIANT,
    ),
    columns=(MCR, F1, JAC),
    paper_table="Table 3",
    loss_only_row="loss-only",
    threshold_shift_row="shift",
    query_budgets=(50, 150),
)


def make_record(row, replicate, found, *, column="a9a/mcr", trace=(), **fields):
    """A record of tier local; its metric is that of the column, or mcr."""
    metric = {"a9a/f1": "f1", "a9a/jac": "jaccard", "torn": "f1"}.get(column, "mcr")
    metric = fields.pop("metric", metric)
    names = ("block", "also", "pipeline", "value_functions")
    parts = {name: fields.pop(name) for name in names if name in fields}
    place = {"column": column, "tier": "local", "metric": Unit(metric)}
    spec = record_cases.make_spec(row, replicate, **place, **parts)
    points = record_cases.make_trace(metric, *trace)
    fields = {"data": {"variant": "a9a-sample"}, "trace": points} | fields
    return record_cases.make_record(spec, found, **fields)


def make_arm(row, values, **fields):
    """One record per value, two meta-tests each that lie 0.001 to either side."""
    return [
        make_record(row, replicate, [value - 0.001, value + 0.001], **fields)
        for replicate, value in enumerate(values)
    ]


def placed(record, **spec):
    """The record with another specification."""
    return replace(record, spec=replace(record.spec, **spec))


TRACE = (
    (0, 10, [0.30, 0.32], [0.31, 0.33]),
    (0, 50, [0.20, 0.22], [0.21, 0.23]),
    (0, 151, None, [0.11, 0.13]),
)
"""Step, queries, metric on observe and on test."""


BALANCED, NATURAL = LAYOUT.blocks
LOSS_ONLY = make_arm("loss-only", [0.20, 0.22, 0.21])
# Paired with LOSS_ONLY: gains 0.05, 0.06, 0.055 and 0.039, 0.041, 0.040.
SHIFT = make_arm("shift", [0.15, 0.16, 0.155])
METRICOPT = make_arm("metricopt", [0.161, 0.179, 0.170], queries=4800)
ARMS = [*LOSS_ONLY, *SHIFT, *METRICOPT]


def by_row(layout, records):
    """The cells of a table with one block and column by the name of their row."""
    return {cell.row.name: cell for cell in judge(layout, records)}


def page_of(layout, records, **more):
    """The text of the page of a report."""
    return build(layout, records, **more)["table.md"].decode()


def cells_in(section):
    """The cells of the table of a section, line by line; none without a section."""
    lines = section[2].splitlines()[2:] if section else []
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def headings_in(section):
    """The headings of the table of a section."""
    return [cell.strip() for cell in section[2].splitlines()[0][1:-1].split("|")]


def lines_of(panel):
    """Points of the lines of a panel, by label."""
    return {line.get_label(): line.get_xydata().tolist() for line in panel.get_lines()}


def bars_of(panel):
    """Points of a panel with the lower and upper ends of their bars, by label."""
    found = {}
    for container in panel.containers:
        line, _, (bar,) = container
        ends = [segment[:, 1].tolist() for segment in bar.get_segments()]
        found[container.get_label()] = (line.get_xydata().tolist(), ends)
    return found


def cell_of(records, row, column=MCR, block=BALANCED):
    cells = judge(LAYOUT, records)
    (cell,) = [
        cell
        for cell in cells
        if (cell.row.name, cell.column, cell.block) == (row, column, block)
    ]
    return cell


def p_value_of(t):
    """Two-sided p value of t with 2 degrees of freedom, in closed form."""
    return 1 - t / math.sqrt(2 + t * t)
