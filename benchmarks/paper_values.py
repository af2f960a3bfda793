"""The numbers printed in the papers, as data, each with its table, row and column."""

from dataclasses import dataclass

METRICOPT = "Huang et al., CVPR 2021"
JACCARD_NOTE = (
    "not the positive-class Jaccard index: comparable only with the legacy variant"
)

ROW_LABELS = {
    "ce": "cross-entropy",
    "sl": "learned surrogate loss",
    "lo": "Lovász-Softmax",
    "cs": "cost-sensitive",
    "metricopt": "MetricOpt",
}
"""The paper's rows as printed in our tables."""


@dataclass(frozen=True)
class PaperValue:
    """One printed number.

    Attributes:
        paper: the paper it is printed in.
        table: its table, such as `Table 3`.
        row: name of the method, in our words.
        column: data set and metric, such as `a9a/mcr`.
        value: the number, in `unit`.
        std: its printed deviation, None if none is printed.
        unit: `fraction` or `percent`.
        note: what a reader must know to compare with it.
    """

    paper: str
    table: str
    row: str
    column: str
    value: float
    std: float | None = None
    unit: str = "fraction"
    note: str = ""


def _table3(row: str, column: str, value: float) -> PaperValue:
    note = JACCARD_NOTE if column.endswith("/jac") else ""
    return PaperValue(METRICOPT, "Table 3", row, column, value, note=note)


PAPER_VALUES: tuple[PaperValue, ...] = (
    _table3("ce", "a9a/mcr", 0.1520),
    _table3("ce", "cov/mcr", 0.2149),
    _table3("lo", "a9a/jac", 0.8461),
    _table3("lo", "cov/jac", 0.7406),
    _table3("cs", "a9a/f1", 0.6823),
    _table3("cs", "cov/f1", 0.7695),
    _table3("sl", "a9a/mcr", 0.1502),
    _table3("sl", "a9a/jac", 0.8488),
    _table3("sl", "a9a/f1", 0.6866),
    _table3("sl", "cov/mcr", 0.2198),
    _table3("sl", "cov/jac", 0.7808),
    _table3("sl", "cov/f1", 0.7898),
    _table3("metricopt", "a9a/mcr", 0.1369),
    _table3("metricopt", "a9a/jac", 0.8691),
    _table3("metricopt", "a9a/f1", 0.6934),
    _table3("metricopt", "cov/mcr", 0.2057),
    _table3("metricopt", "cov/jac", 0.7758),
    _table3("metricopt", "cov/f1", 0.8013),
)


def paper_rows(table: str) -> tuple[str, ...]:
    """Return the rows of a table of the paper, in its order."""
    rows = (printed.row for printed in PAPER_VALUES if printed.table == table)
    return tuple(dict.fromkeys(rows))


def find_paper_value(table: str, row: str, column: str) -> PaperValue | None:
    """Return the number printed at a row and column of a table, None if there is none.

    Args:
        table: such as `Table 3`.
        row: method, such as `metricopt`.
        column: data set and metric, such as `a9a/mcr`.
    """
    for printed in PAPER_VALUES:
        if (printed.table, printed.row, printed.column) == (table, row, column):
            return printed
    return None
