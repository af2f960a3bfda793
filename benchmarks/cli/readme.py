"""The tables of README.md, from the committed records.

`python -m benchmarks.cli.readme` writes them anew; `readme_problems` says whether
they are current.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.experiments.registry import find_experiment
from benchmarks.report.columns import NOTHING, Column
from benchmarks.report.curves import at_budget, of_arm, of_row
from benchmarks.report.layout import TableLayout, data_variants
from benchmarks.report.reading import Reading
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import count_range, text_table
from benchmarks.runs.paths import ROOT
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import read_jsonl
from metricopt.errors import DataError, MetricOptError
from metricopt.files import write_atomically

TIER = "local"
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)")

FIRST_EXPERIMENT, FIRST_BLOCK = "table3", "balanced"
FIRST_COLUMNS = ("a9a/mcr", "a9a/f1")
SEARCHES = ("metricopt", "random-search", "cma-es", "guided-cma")
REFERENCES = ("cross-entropy", "loss-only", "loss-only-dense", "threshold-shift")

PAYS_COLUMNS = (
    ("table1", "cifar10/mcr"),
    ("table2", "resnet32/aucpr"),
    ("table2", "small/aucpr"),
    ("table2", "resnet32/aucpr-macro-logits"),
    ("table2", "small/aucpr-macro-logits"),
    ("mismatch", "noise/mcr"),
    ("mismatch", "cifar10/vehicle-animal-cost"),
    ("mismatch", "cifar10/worst-class-error"),
    ("mismatch", "tail/f-macro"),
    ("mismatch", "tail/g-mean"),
)
"""Experiment and column of every line of the second table."""
PAYS_ROWS = {
    "cross-entropy": "untouched",
    "loss-only-dense": "dense evaluation",
    "metricopt": "MetricOpt",
    "cma-es": "CMA-ES",
    "class-offsets": "class offsets",
    "oracle-test": "oracle: CMA-ES on test",
}
"""Row of every column of the second table after the first, and its heading."""


def first_table(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return methods at equal metric queries as Markdown, and below it the references.

    Args:
        layout: that of Table 3.
        records: all its records of one tier.

    Raises:
        DataError: if there is no finished run of a search in one of its columns.
    """
    lines, remarks = [], []
    for column in layout.columns:
        if column.name in FIRST_COLUMNS:
            place = (FIRST_BLOCK, column.source)
            own = [r for r in records if (r.spec.block, r.spec.column) == place]
            lines += _first_lines(layout, own, column)
            remarks.append(_remark(layout, own, column))
    names = ["metric", "after", *(f"{q:,} queries" for q in layout.query_budgets)]
    return "\n".join([to_markdown(text_table(lines, names)), "", *remarks])


def pays_table(records: Mapping[str, Sequence[RunRecord]]) -> str:
    """Return where metric fine-tuning pays as Markdown.

    Args:
        records: of every experiment in `PAYS_COLUMNS`, by its name.
    """
    lines = []
    for experiment, name in PAYS_COLUMNS:
        columns = find_experiment(experiment).layout(TIER).columns
        column = next(each for each in columns if each.name == name)
        own = [r for r in records[experiment] if r.spec.column == column.source]
        texts = (_pays_text(own, row, column) for row in PAYS_ROWS)
        lines.append([column.heading, *texts])
    return to_markdown(text_table(lines, ["on test", *PAYS_ROWS.values()]))


def committed_first_table(results: Path) -> str:
    """Return the first table of the committed report.

    Raises:
        DataError: if it has no records, or none of a search.
    """
    layout = find_experiment(FIRST_EXPERIMENT).layout(TIER)
    return first_table(layout, _committed(results, FIRST_EXPERIMENT))


def committed_pays_table(results: Path) -> str:
    """Return the second table of the committed reports.

    Raises:
        DataError: if one of them has no records.
    """
    names = {experiment for experiment, _ in PAYS_COLUMNS}
    return pays_table({name: _committed(results, name) for name in names})


TABLES: dict[str, Callable[[Path], str]] = {
    "first-table": committed_first_table,
    "when-it-pays": committed_pays_table,
}
"""Name of every table in README.md, and what makes it of the folder of reports."""


def marks(name: str) -> tuple[str, str]:
    """Return what stands before and after a table."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def rewritten(readme: str, name: str, table: str) -> str:
    """Return the text of a README with a table between its two marks.

    Raises:
        DataError: if it does not have each mark once, in order.
    """
    begin_mark, end_mark = marks(name)
    before, begin, rest = readme.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not (begin and end) or begin_mark in rest or end_mark in before + after:
        raise DataError(f"README.md needs {begin_mark} and then {end_mark}, each once")
    return f"{before}{begin_mark}\n\n{table}\n\n{end_mark}{after}"


def readme_problems(
    results: Path = ROOT / "results", readme: Path = ROOT / "README.md"
) -> list[str]:
    """Return what is wrong with README.md, one sentence each, empty if nothing.

    Its tables must be those the committed records give, and every relative link must
    lead somewhere.

    Args:
        results: folder of the committed reports.
        readme: the file, which links relative to its own folder.
    """
    text = readme.read_text(encoding="utf-8")
    problems = [
        f"{readme.name} links to {target}, which does not exist"
        for target in dict.fromkeys(LINK.findall(text))
        if not (readme.parent / target).exists()
    ]
    for name, make in TABLES.items():
        try:
            current = rewritten(text, name, make(results)) == text
        except MetricOptError as error:
            problems.append(str(error))
            continue
        if not current:
            problems.append(
                f"the table {name} of {readme.name} is not that of the records; "
                "run `python -m benchmarks.cli.readme`"
            )
    return problems


def main() -> int:
    """Write the tables into README.md and return the exit code."""
    readme = ROOT / "README.md"
    try:
        text = readme.read_text(encoding="utf-8")
        for name, make in TABLES.items():
            text = rewritten(text, name, make(ROOT / "results"))
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_atomically(readme, text.encode())
    return 0


def _committed(results: Path, experiment: str) -> list[RunRecord]:
    return read_jsonl(results / experiment / TIER / "records.jsonl")


def _first_lines(
    layout: TableLayout, records: Sequence[RunRecord], column: Column
) -> list[list[str]]:
    lines, reading = [], Reading(column)
    for arm in SEARCHES:
        found = (at_budget(records, arm, q, reading) for q in layout.query_budgets)
        texts = [column.summary(values) for values in found]
        lines.append([column.heading, layout.arms[arm], *texts])
    if all(text == NOTHING for line in lines for text in line[2:]):
        raise DataError(f"there is no finished run of a search in {column.name!r} yet")
    return lines


def _remark(layout: TableLayout, records: Sequence[RunRecord], column: Column) -> str:
    """Return the data, and what the arms reach that the table has no place for."""
    parts, reading = [], Reading(column)
    for arm in REFERENCES:
        runs = [record for record in of_arm(records, arm) if reading.finished(record)]
        values = reading.all_finals(runs)
        parts.append(f"{layout.arms[arm]} {column.summary(values)}")
    replicates = count_range(list(Counter(r.spec.row for r in records).values()))
    variants = ", ".join(sorted(data_variants(records, column)))
    return (
        f"- {column.heading} ({variants}, {replicates} replicates), to compare with: "
        f"{'; '.join(parts)}."
    )


def _pays_text(records: Sequence[RunRecord], row: str, column: Column) -> str:
    reading = Reading(column, replicated=False)
    runs = [record for record in of_row(records, row) if reading.finished(record)]
    return column.summary(reading.all_finals(runs))


if __name__ == "__main__":
    sys.exit(main())
