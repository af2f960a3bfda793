"""Hand-written records and a small layout for the tests of tables and reports."""

from benchmarks.layout import Block, Column, Row, TableLayout
from benchmarks.records import RunRecord, RunSpec

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
        Row("loss-only", "loss only", paper_row="ce"),
        Row("shift", "threshold shift", base_row="loss-only"),
        Row("metricopt", "MetricOpt", base_row="loss-only", paper_row="metricopt"),
        Row("metricopt-q50", "MetricOpt, 50 queries", base_row="loss-only"),
    ),
    columns=(
        Column("a9a/mcr", "A9A MCR", "mcr", paper_column="a9a/mcr"),
        Column("a9a/f1", "A9A F1", "f1", higher_is_better=True, paper_column="a9a/f1"),
        Column(
            "a9a/jac",
            "A9A JAC",
            "jac",
            higher_is_better=True,
            paper_column="a9a/jac",
            not_comparable="another index",
        ),
    ),
    paper_table="Table 3",
    loss_only_row="loss-only",
    threshold_shift_row="shift",
    query_budgets=(50, 150),
)


def make_record(row, replicate, test, *, column="a9a/mcr", block="balanced", **fields):
    spec = RunSpec("table3", "local", block, row, column, replicate, {"seed": 1})
    fields = {"status": "done", "data": {"variant": "a9a-sample"}} | fields
    return RunRecord(spec, test=test, observe=test, **fields)


def make_arm(row, values, **fields):
    """One record per value, two meta-tests each that lie 0.001 to either side."""
    return [
        make_record(row, replicate, [value - 0.001, value + 0.001], **fields)
        for replicate, value in enumerate(values)
    ]


def make_trace(*entries):
    names = ("step", "queries", "observe", "test")
    return [dict(zip(names, entry, strict=True)) for entry in entries]


TRACE = make_trace(
    (0, 10, [0.30, 0.32], [0.31, 0.33]),
    (0, 50, [0.20, 0.22], [0.21, 0.23]),
    (0, 151, None, [0.11, 0.13]),
)
