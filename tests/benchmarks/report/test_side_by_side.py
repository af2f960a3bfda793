"""A user's results beside those committed here."""

import pytest

from benchmarks.report.page import build, write_report
from benchmarks.report.sections.side_by_side import side_by_side
from benchmarks.report.verify import verify
from tests.benchmarks.report.report_cases import (
    LAYOUT,
    cells_in,
    headings_in,
    make_arm,
    make_record,
    page_of,
)

COMMITTED = [
    *make_arm("loss-only", [0.20, 0.22]),
    *make_arm("metricopt", [0.16, 0.18]),
    *make_arm("metricopt", [0.60, 0.62], column="a9a/f1"),
]
OWN = [
    *make_arm("loss-only", [0.23]),
    *make_arm("shift", [0.15]),
    *make_arm("metricopt", [0.65, 0.67], column="a9a/f1"),
    make_record("metricopt", 0, [], status="diverged"),
]
HEADING = "## Beside the committed results"


def test_every_cell_of_either_side_has_a_line():
    section = side_by_side(LAYOUT, OWN, COMMITTED)
    names = ["block", "column", "method", "committed", "yours", "difference", "paper"]
    assert headings_in(section) == names
    lines = [" | ".join(line[1:]) for line in cells_in(section)]
    assert {line[0] for line in cells_in(section)} == {"Balanced"}
    assert lines == [
        "A9A MCR ↓ | loss only | .2100±.0141 (2) | .2300 (1) | +.0200 | .1520",
        "A9A MCR ↓ | threshold shift | · | .1500 (1) | · | ·",
        "A9A MCR ↓ | MetricOpt | .1700±.0141 (2) | diverged 1/1 | · | .1369",
        "A9A F1 ↑ | MetricOpt | .6100±.0141 (2) | .6600±.0141 (2) | +.0500 | .6934",
    ]


def test_the_section_is_in_reports_with_a_reference_only():
    plain, beside = build(LAYOUT, OWN), build(LAYOUT, OWN, reference=COMMITTED)
    changed = {name for name in plain if plain[name] != beside[name]}
    assert changed == {"table.md"}
    page = beside["table.md"].decode()
    before, _, after = page.partition(f"{HEADING}\n")
    assert ".6600±.0141 (2)" in after
    assert "is not comparable" not in page
    assert before.rstrip() in plain["table.md"].decode()
    assert HEADING not in plain["table.md"].decode()


def test_other_data_and_missing_results_are_named():
    other = make_arm("shift", [0.15], data={"variant": "a9a-full"})
    page = page_of(LAYOUT, other, reference=COMMITTED)
    text = "A9A MCR is not comparable: committed on a9a-sample, yours on a9a-full."
    assert text in page
    page = page_of(LAYOUT, OWN, reference=[])
    assert f"{HEADING}\n\nThere are no committed results of this tier.\n" in page


@pytest.mark.parametrize("reference", [None, [], COMMITTED])
def test_a_report_is_verified_with_its_reference(tmp_path, reference):
    write_report(LAYOUT, OWN, tmp_path, reference=reference)
    assert verify(LAYOUT, tmp_path, reference=reference) == []
    other = [] if reference is None else None
    (problem,) = verify(LAYOUT, tmp_path, reference=other)
    assert "table.md" in problem
