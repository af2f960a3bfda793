"""The first table of README.md: methods at equal metric queries, from the records."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks import stats
from benchmarks.cells import replicate_mean
from benchmarks.curves import at_budget, of_arm
from benchmarks.experiment import find_experiment
from benchmarks.layout import Column, TableLayout, data_variants
from benchmarks.records import RunRecord, read_jsonl
from benchmarks.render import to_markdown
from metricopt.errors import DataError

EXPERIMENT, TIER, BLOCK = "table3", "local", "balanced"
COLUMNS = ("a9a/mcr", "a9a/f1")
SEARCHES = ("metricopt", "random-search", "cma-es", "guided-cma")
REFERENCES = ("cross-entropy", "loss-only", "loss-only-dense", "threshold-shift")
NOTHING = "·"


def first_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return the table as Markdown, and below it what else there is to compare with.

    Args:
        layout: that of Table 3.
        records: all its records of one tier.

    Raises:
        DataError: if there is no finished run of a search in one of its columns.
    """
    from pandas import DataFrame

    lines, remarks = [], []
    for column in layout.columns:
        if column.name in COLUMNS:
            place = (BLOCK, column.name)
            own = [r for r in records if (r.spec.block, r.spec.column) == place]
            lines += _lines(layout, own, column)
            remarks.append(_remark(layout, own, column))
    names = ["metric", "after", *(f"{q:,} queries" for q in layout.query_budgets)]
    table = to_markdown(DataFrame(lines, columns=names, dtype="object"))
    return "\n".join([table, "", *remarks])


def committed(results: Path) -> str:
    """Return the table of the committed report.

    Raises:
        DataError: if it has no records, or none of a search.
    """
    records = read_jsonl(results / EXPERIMENT / TIER / "records.jsonl")
    return first_table(find_experiment(EXPERIMENT).layout(TIER), records)


def _lines(
    layout: TableLayout, records: Sequence[RunRecord], column: Column
) -> list[list[str]]:
    lines = []
    for arm in SEARCHES:
        cells = (at_budget(records, arm, "test", q) for q in layout.query_budgets)
        texts = [text_of(values, column) for values in cells]
        lines.append([column.heading, layout.arms[arm], *texts])
    if all(text == NOTHING for line in lines for text in line[2:]):
        raise DataError(f"there is no finished run of a search in {column.name!r} yet")
    return lines


def _remark(layout: TableLayout, records: Sequence[RunRecord], column: Column) -> str:
    """Name the data, and say what the arms reach that the table has no place for."""
    parts = []
    for arm in REFERENCES:
        found = (replicate_mean(record.test) for record in of_arm(records, arm))
        values = [value for value in found if value is not None]
        parts.append(f"{layout.arms[arm]} {text_of(values, column)}")
    replicates = len({record.spec.replicate for record in records})
    variants = ", ".join(sorted(data_variants(records, column.name)))
    return (
        f"- {column.heading} ({variants}, {replicates} replicates), to compare with: "
        f"{'; '.join(parts)}."
    )


def text_of(values: Sequence[float], column: Column) -> str:
    """Return mean and sample standard deviation of some values, in native units."""
    centre, spread = stats.mean(values), stats.sample_std(values)
    if centre is None:
        return NOTHING
    text = column.format(centre)
    return text if spread is None else f"{text}±{column.format(spread)}"
