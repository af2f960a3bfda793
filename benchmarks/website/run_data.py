"""All records of a report in one script: compressed, as a page can read it offline."""

import base64
import gzip
from collections.abc import Sequence

from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import jsonl
from benchmarks.website.cell_data import compact
from benchmarks.website.reports import Report

KNOWN_BY = 8
"""Characters of a digest by which a page finds the file of a run."""


def runs_script(report: Report) -> str:
    """Return a script with all records, which a page takes apart.

    A page that is opened from a file may load scripts, and nothing else.
    """
    lines = "".join(jsonl(records) for records in (report.records, report.own))
    packed = gzip.compress(lines.encode(), 9, mtime=0)
    text = base64.b64encode(packed).decode()
    committed = len(report.records)
    return f"addRuns({compact(report.name)},{compact(text)},{committed});\n"


def index_script(reports: Sequence[Report]) -> str:
    """Return a script that names the report of every run by its digest."""
    names = {
        report.name: "".join(map(_short, (*report.records, *report.own)))
        for report in reports
    }
    titles = {report.name: report.layout.title for report in reports}
    return f"addIndex({KNOWN_BY},{compact(names)},{compact(titles)});\n"


def _short(record: RunRecord) -> str:
    return record.digest[:KNOWN_BY]
