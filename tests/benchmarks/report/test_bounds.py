"""Runs under bounds: hand-written records, and real ones of a short search."""

from dataclasses import replace

import pytest

from benchmarks.arms.contract import ARMS
from benchmarks.execution.runner import judge as judged
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import BiasSettings
from benchmarks.report.cells import judge
from benchmarks.report.columns import Column
from benchmarks.report.sections.bounds import BOUNDS, FEASIBLE, within_bounds
from benchmarks.rows.on_outputs import SHORT
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import SUITE_METRICS, Unit, metric_of
from metricopt.errors import DataError
from metricopt.metrics.constrained import CONFIDENCE, BoundedMetric, ConstrainedMetric
from tests.benchmarks.problems.pipeline_cases import method_spec, tabular_unit
from tests.benchmarks.report import report_cases
from tests.benchmarks.report.report_cases import make_layout, make_row, page_of
from tests.benchmarks.runs import record_cases

OBJECTIVE, BOUNDED = Unit("f1"), Unit("fpr")
F1 = Column("a9a/f1", "A9A", OBJECTIVE)
LAYOUT = make_layout(
    [make_row("untouched"), make_row("ours", "ours, within bounds")], [F1]
)


class Within(ConstrainedMetric):
    """F while the false positive rate is between two numbers."""

    def __init__(self, most=0.2, least=None, confidence=CONFIDENCE):
        rate = metric_of(BOUNDED)
        bounds = [BoundedMetric(rate, "at most", most)]
        if least is not None:
            bounds.append(BoundedMetric(rate, "at least", least))
        super().__init__(metric_of(OBJECTIVE), bounds, confidence)


@pytest.fixture(autouse=True)
def _within(monkeypatch):
    assert "within" not in SUITE_METRICS  # fills the registry
    monkeypatch.setitem(SUITE_METRICS._units, "within", Within)


def record(row, replicate, found, rates, feasible=None, **fields):
    """A record of a run for F within the bound, judged by all three metrics."""
    metric = Unit("within", fields.pop("settings", {}))
    spec = record_cases.make_spec(
        row,
        replicate,
        column=F1.name,
        tier="local",
        metric=metric,
        also=(OBJECTIVE, BOUNDED),
        meta_tests=max(1, len(found)),
    )
    test = {metric.label: found, "f1": found, "fpr": rates} if found else {}
    notes = {} if feasible is None else {FEASIBLE: feasible}
    usual = {"status": "done", "queries": 15, "data": {"variant": "a9a-sample"}}
    return RunRecord(spec, **usual | {"test": test, "notes": notes} | fields)


def ours(**settings):
    """Said to be met: it is, exactly on the bound, and it is not. Not said, and met."""
    found = [
        ([0.6], [0.2], 0.95, 15, 2.0),
        ([0.5], [0.2001], 0.99, 18, 4.0),
        ([0.4], [0.1], 0.94, 15, 3.0),
    ]
    return [
        record(
            "ours",
            replicate,
            *values,
            queries=queries,
            seconds={"total": seconds},
            settings=settings,
        )
        for replicate, (*values, queries, seconds) in enumerate(found)
    ]


BEFORE = [record("untouched", n, [0.9], [0.3], queries=0) for n in range(3)]


def told(records):
    """The section, and its tables: each with its names, then its lines of cells."""
    section = within_bounds(LAYOUT, judge(LAYOUT, records))
    parts = [part.splitlines() for part in section if part.startswith("|")]
    tables = [
        [[cell.strip() for cell in line[1:-1].split("|")] for line in [first, *lines]]
        for first, _, *lines in parts
    ]
    return section, tables


def line_of(records):
    """The line of the last row in the table of the column."""
    _, (_, (*_, line)) = told(records)
    return line


def test_lines_by_hand():
    section, (over_all, (names, before, line)) = told([*BEFORE, *ours()])
    assert section[3] == "### Balanced, A9A: f1, fpr at most 0.2"
    of_values = ["met", "objective ↑", "where met", "fpr ↓"]
    assert names == ["method", *of_values, "queries", "s", "said", "said and met"]
    nothing = ["0 of 3", ".9000±.0000", "·", ".3000±.0000", "0", "0.0", "·", "·"]
    assert before == ["untouched", *nothing]
    # Means of .6, .5 and .4, and of .6 and .4; rates of .2, .2001 and .1.
    values = ["2 of 3", ".5000±.1000", ".5000±.1414", ".1667±.0578", "16", "3.0"]
    assert line == ["ours, within bounds", *values, "2 of 3", "1 of 2"]
    assert over_all[1:] == [
        ["untouched", "3", "0 %", "·", "·"],
        ["ours, within bounds", "3", "67 %", "67 %", "50 %"],
    ]


def test_a_wrong_word_and_a_failed_run_are_shown():
    wrong = [record("ours", n, [0.9], [0.5], 1.0) for n in range(2)]
    failed = record("ours", 2, [], [], status="failed", message="out of memory")
    unknown = record("ours", 3, [0.2], [None], 0.1)
    _, (over_all, (_, line)) = told([*wrong, failed, unknown])
    assert over_all[1] == ["ours, within bounds", "4", "0 %", "67 %", "0 %"]
    assert line[1:5] == ["0 of 4", ".6667±.4041", "·", ".5000±.0000"]
    assert line[7:] == ["2 of 3", "0 of 2"]


def test_every_search_of_a_run_is_a_result_though_its_notes_are_of_all():
    line = line_of([record("ours", n, [0.6, 0.4], [0.2, 0.3], 1.0) for n in range(2)])
    assert line[1] == "2 of 4"
    assert line[7:] == ["·", "·"]


def test_the_confidence_of_the_metric_decides_what_counts_as_said():
    assert line_of(ours(confidence=0.9))[7:] == ["3 of 3", "2 of 3"]
    assert line_of(ours(confidence=0.96))[7:] == ["1 of 3", "0 of 1"]


def test_two_bounds_on_one_metric_share_a_column():
    section, (_, (names, line)) = told(ours(least=0.15))
    assert section[3].endswith(": f1, fpr at most 0.2 and fpr at least 0.15")
    assert names.count("fpr ↓") == 1
    assert line[1] == "1 of 3"


def test_a_page_has_the_section_where_runs_have_bounds():
    assert f"\n{BOUNDS}\n" in page_of(LAYOUT, [*BEFORE, *ours()])
    plain = report_cases.LAYOUT
    assert within_bounds(plain, judge(plain, report_cases.ARMS)) == []
    # Runs towards another metric than the one shown, which has no bounds.
    spec = replace(BEFORE[0].spec, metric=Unit("mcr"))
    other = replace(BEFORE[0], spec=spec, test={"f1": [0.9], "fpr": [0.3]})
    assert told([other]) == ([], [])


def test_results_must_be_judged_by_the_bounded_metrics():
    (first, *_) = ours()
    spec = replace(first.spec, also=(OBJECTIVE,))
    message = "'fpr at most 0.2', so they must be judged by 'fpr', too; .* names f1"
    with pytest.raises(DataError, match=message):
        told([replace(first, spec=spec, test={"f1": [0.6]})])


@pytest.mark.parametrize("most", [0.3, 0.001])
def test_a_real_search_says_whether_its_bound_is_met(most):
    unit = tabular_unit(adapter=BiasSettings(offsets=True))
    also = (OBJECTIVE, BOUNDED)
    known = {"row": "ours", "column": F1.name, "also": also, "pipeline": unit}
    plain = method_spec("metricopt-outputs", 16, settings=SHORT, rows=1, **known)
    spec = replace(plain, metric=Unit("within", {"most": most}))
    pipeline = make_pipeline(unit, spec.replicate)
    chosen = ARMS.get("method").run(spec, pipeline, metric_of(spec.metric))
    found = RunRecord(spec, "done", **judged(chosen, spec, pipeline))
    (f1,), (rate,) = (found.values("test", each.label) for each in also)
    line = line_of([found])
    assert line[1] == f"{int(rate <= most)} of 1"
    assert line[2] == F1.format(f1)
    # A rate as low as that is nothing one can be sure of, on 114 examples.
    assert (found.notes[FEASIBLE] >= CONFIDENCE) == (most == 0.3)
    assert line[7] == f"{int(most == 0.3)} of 1"
