"""The committed records and layouts that the pages are made of."""

from functools import cache
from pathlib import Path

from benchmarks.report.layout import TableLayout
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import find_experiment

TIER = "local"


@cache
def committed(results: Path, experiment: str) -> tuple[RunRecord, ...]:
    """Return the committed records of an experiment, read once for all pages.

    Raises:
        DataError: if there are none.
    """
    return tuple(read_jsonl(results / experiment / TIER / "records.jsonl"))


def layout_of(experiment: str) -> TableLayout:
    """Return the layout of an experiment at the tier of the pages."""
    return find_experiment(experiment).layout(TIER)
