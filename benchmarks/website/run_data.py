"""All records of a report in one script: compressed, as a page can read it offline."""

import gzip
import json
from collections.abc import Sequence

import numpy as np

from benchmarks.runs.codec import canonical
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import jsonl
from benchmarks.website.cell_data import compact
from benchmarks.website.reports import Report

KNOWN_BY = 8
"""Characters of a digest by which a page finds the file of a run."""
FIRST_SIGN, BITS = 0x3400, 15
"""Characters of packed bytes: all are two bytes of UTF-16, and none has a meaning in
JavaScript. So a byte takes 1.07 bytes in a script, and 1.33 in base64."""


def runs_script(report: Report) -> bytes:
    """Return a script in UTF-16 with all records, which a page takes apart.

    A page that is opened from a file may load scripts, and nothing else.
    """
    lines = "".join(jsonl(records) for records in (report.records, report.own))
    content = gzip.compress(by_field(lines.split("\n")[:-1]).encode(), 9, mtime=0)
    name, size, committed = compact(report.name), len(content), len(report.records)
    script = f'addRuns({name},"{packed(content)}",{size},{committed});\n'
    return script.encode("utf-16")


def by_field(lines: Sequence[str]) -> str:
    """Return canonical lines of records field by field, the names of fields first.

    Values of one field are alike: so they compress to nine tenths of what lines do.
    """
    records = [json.loads(line) for line in lines]
    names = list(records[0]) if records else []
    values = (canonical(record[name]) for name in names for record in records)
    return "\n".join([canonical(names), *values])


def packed(content: bytes) -> str:
    """Return bytes as characters of 15 bits each, the last one filled with zeros."""
    bits = np.unpackbits(np.frombuffer(content, np.uint8))
    filled = np.pad(bits, (0, -len(bits) % BITS)).reshape(-1, BITS)
    numbers = filled @ (1 << np.arange(BITS)[::-1])
    return "".join(map(chr, FIRST_SIGN + numbers))


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
