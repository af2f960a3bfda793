"""Sections of what runs note, from hand-written notes."""

from dataclasses import replace

import pytest

from benchmarks.report.cells import judge
from benchmarks.report.sections.noted import (
    IDENTIFIED,
    PROPOSALS,
    identified,
    proposals,
)
from benchmarks.runs.record import PROPOSAL_RECALL
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    LOSS_ONLY,
    cells_in,
    make_record,
    page_of,
)

KNOWN = {"identified": 1.0, "identified_after": 6.0, "untouched": 0.0}
PARTLY = {"identified": 0.5, "identified_after": 9.0, "untouched": 0.5}
UNKNOWN = {"identified": 0.0, "untouched": 1.0}


def lines(*notes):
    records = [
        make_record("metricopt", number, [0.2, 0.3], notes=each)
        for number, each in enumerate(notes)
    ]
    return cells_in(identified(judge(LAYOUT, [*LOSS_ONLY, *records])))


def test_a_line_by_hand():
    # (1 x 6 + 0.5 x 9) / 1.5 queries.
    place = ["Balanced", "A9A MCR", "MetricOpt"]
    assert lines(KNOWN, PARTLY, UNKNOWN) == [[*place, "50 %", "7.0", "50 %", "3"]]
    # Without an identified search no queries are told.
    ((*_, share, after, kept, runs),) = lines(UNKNOWN)
    assert (share, after, kept, runs) == ("0 %", "·", "100 %", "1")
    # Rows without the notes are left out.
    assert lines({}, {}) == []
    assert identified(judge(LAYOUT, LOSS_ONLY)) == []


@pytest.mark.parametrize(("notes", "shown"), [(KNOWN, True), ({}, False)])
def test_a_page_has_the_section_where_records_hold_the_notes(notes, shown):
    record = make_record("metricopt", 0, [0.2, 0.3], notes=notes)
    page = page_of(LAYOUT, [*LOSS_ONLY, record])
    assert (f"\n{IDENTIFIED}\n" in page) == shown


def on_detector(row, replicate, recall):
    data = {
        "variant": "a9a-sample",
        "theta": f"detector {replicate}",
        PROPOSAL_RECALL: recall,
    }
    return make_record(row, replicate, [0.2, 0.3], data=data)


def test_every_detector_counts_once():
    records = [
        on_detector(row, number, recall)
        for row in ("loss-only", "metricopt")
        for number, recall in enumerate([".9000", ".9200", ".9400"])
    ]
    found = proposals(LAYOUT, records)
    assert found[0] == PROPOSALS
    assert cells_in(found) == [["Balanced", "a9a/mcr", ".9200±.0200", "3"]]
    layout = replace(LAYOUT, network_of=lambda spec: str(spec.replicate))
    assert PROPOSALS in page_of(layout, records)
    # Other networks have no such section.
    assert proposals(LAYOUT, LOSS_ONLY) == []
