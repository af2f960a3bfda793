"""The second table of README.md: where metric fine-tuning pays, from the records."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.curves import of_row
from benchmarks.experiment import find_experiment
from benchmarks.layout import Column
from benchmarks.readme_table import text_of
from benchmarks.records import RunRecord, read_jsonl
from benchmarks.render import to_markdown

TIER = "local"
PLACES = (
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
"""Experiment and column of every line."""

ROWS = {
    "cross-entropy": "untouched",
    "loss-only-dense": "dense evaluation",
    "metricopt": "MetricOpt",
    "cma-es": "CMA-ES",
    "class-offsets": "class offsets",
    "oracle-test": "oracle: CMA-ES on test",
}
"""Row of every column after the first, and its heading."""


def pays_table(records: Mapping[str, Sequence[RunRecord]]) -> str:
    """Return the table as Markdown: a line for every place, a column for every row.

    Args:
        records: of every experiment in `PLACES`, by its name.
    """
    from pandas import DataFrame

    lines = []
    for experiment, name in PLACES:
        columns = find_experiment(experiment).layout(TIER).columns
        column = next(each for each in columns if each.name == name)
        own = [r for r in records[experiment] if r.spec.column == name]
        lines.append([column.heading, *(_cell(own, row, column) for row in ROWS)])
    return to_markdown(DataFrame(lines, columns=["on test", *ROWS.values()]))


def committed(results: Path) -> str:
    """Return the table of the committed reports.

    Raises:
        DataError: if one of them has no records.
    """
    names = {experiment for experiment, _ in PLACES}
    return pays_table(
        {name: read_jsonl(results / name / TIER / "records.jsonl") for name in names}
    )


def _cell(records: Sequence[RunRecord], row: str, column: Column) -> str:
    found = [record.test for record in of_row(records, row) if record.finished]
    values = [value for test in found for value in test if value is not None]
    return text_of(values, column)
