"""The section on proposals: one number for every detector, whatever its runs."""

from dataclasses import replace

from benchmarks.report.sections.noted import PROPOSALS, proposals
from benchmarks.runs.record import PROPOSAL_RECALL
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    LOSS_ONLY,
    cells_in,
    make_record,
    page_of,
)


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
