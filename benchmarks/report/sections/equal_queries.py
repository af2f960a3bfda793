"""What each method would return at budgets of metric queries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import NOTHING, Column
from benchmarks.report.curves import at_budget
from benchmarks.report.layout import Block, TableLayout
from benchmarks.report.reading import Reading
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from pandas import DataFrame

EQUAL_QUERIES = "## At equal queries"
LEGEND = (
    "What a method would return at each budget of metric queries, meta-training "
    "included. Cells: mean ± sample std on test / mean on observe; `Spread` above says "
    "of what."
)


def equal_queries(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section as Markdown; empty without a table."""
    parts = []
    for block in layout.blocks:
        for column in layout.columns:
            table = equal_queries_table(layout, records, block, column)
            if len(table):
                title = f"### {block.label}, {column.heading}"
                parts += [title, to_markdown(table)]
    return [EQUAL_QUERIES, LEGEND, *parts] if parts else []


def equal_queries_table(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, column: Column
) -> "DataFrame":
    """Return what each arm reaches within each budget of metric queries."""
    place, reading = (block.name, column.source), layout.reading(column)
    own = [r for r in records if (r.spec.block, r.spec.column) == place]
    lines = []
    for arm, label in layout.compared_arms.items():
        texts = [_budget_text(own, arm, q, reading) for q in layout.query_budgets]
        if any(text != NOTHING for text in texts):
            lines.append([label, *texts])
    return text_table(
        lines, ["method", *(f"{q:,} queries" for q in layout.query_budgets)]
    )


def _budget_text(
    records: Sequence[RunRecord], arm: str, queries: int, reading: Reading
) -> str:
    """Return `mean±std on test / mean on observe` at a budget."""
    test = at_budget(records, arm, queries, reading)
    seen = stats.mean(at_budget(records, arm, queries, reading, "observe"))
    text = reading.column.summary(test)
    return (
        text if not test or seen is None else f"{text} / {reading.column.format(seen)}"
    )
