"""What searches claim against what comes of it: hand-written records, and real ones."""

from dataclasses import replace

import pytest
from scipy.stats import binom, norm

from benchmarks.arms.contract import run_arm
from benchmarks.execution.runner import judge as judged
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import BiasSettings
from benchmarks.report.cells import judge
from benchmarks.report.columns import Column
from benchmarks.report.figures.claims import BANDED, HELD, LEVELS, MISSED, claims
from benchmarks.report.figures.drawing import draw_all
from benchmarks.report.sections.claims import (
    CLAIMED,
    calls_by_group,
    what_was_claimed,
)
from benchmarks.rows.on_outputs import SHORT
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import method_spec, tabular_unit
from tests.benchmarks.report.report_cases import (
    F1,
    LAYOUT,
    bars_of,
    cells_in,
    headings_in,
    lines_of,
    make_layout,
    make_record,
    make_row,
    page_of,
    placed,
)

CLAIMING = replace(LAYOUT, untouched_row="loss-only", claims_row="metricopt")
OBSERVED = {"a9a/mcr": 200, "a9a/f1": 5_000}
SIZED = replace(CLAIMING, observed_of=lambda spec: OBSERVED[spec.column])


def call(replicate, before, after, claim=None, error=0.01, *, kept=0.0, **fields):
    """The untouched network of a replicate, and a call on it with what it claims."""
    notes = {"untouched": kept}
    if claim is not None:
        notes |= {"expected_gain": claim, "expected_gain_error": error}
    return [
        make_record("loss-only", replicate, [before], **fields),
        make_record("metricopt", replicate, [after], notes=notes, **fields),
    ]


ERRORS = [
    # The error falls by .1, and .115 were claimed: within 1.96 times .01.
    *call(0, 0.3, 0.2, 0.115),
    # It falls by .02, and .05 were claimed: three errors off.
    *call(1, 0.3, 0.28, 0.05),
    # Kept, though something was claimed before; moved without a claim, and harmful.
    *call(2, 0.3, 0.3, 0.5, kept=1.0),
    *call(3, 0.3, 0.302),
]
F = [
    *call(0, 0.5, 0.53, 0.02, column="a9a/f1"),
    *call(1, 0.5, 0.5005, 0.02, column="a9a/f1"),
]


def lines(layout, records):
    return cells_in(what_was_claimed(layout, judge(layout, records)))


def test_a_line_by_hand():
    section = what_was_claimed(CLAIMING, judge(CLAIMING, ERRORS))
    # (.0825 - .06) / .06 = 37.5 %.
    told = ["50.0 %", "+.0825", "+.0600", "+38 %", "1", "-.0020"]
    assert cells_in(section) == [["Balanced", "4", "3", "2", *told]]
    assert headings_in(section)[0] == "block"
    assert headings_in(section)[4] == "interval holds"


def test_a_line_per_size_and_one_for_all():
    first, second, every = lines(SIZED, [*ERRORS, *F])
    assert (first[0], second[0], every[0]) == ("200", "5,000", "all")
    # F rises by .03 and .0005 where .02 was claimed: both within two errors.
    told = ["100.0 %", "+.0200", "+.0152", "+31 %", "0", "+.0005"]
    assert second[1:] == ["2", "2", "2", *told]
    assert every[1:5] == ["6", "5", "4", "75.0 %"]


def test_claims_of_a_gain_where_there_is_none_are_shown_as_wrong():
    records = [*call(0, 0.3, 0.34, 0.05), *call(1, 0.3, 0.32, 0.06, 0.002)]
    ((*_, held, claimed, true, bias, lost, worst),) = lines(CLAIMING, records)
    assert (held, claimed, true) == ("0.0 %", "+.0550", "-.0300")
    assert (bias, lost, worst) == ("no gain", "2", "-.0400")


def test_gains_are_shares_of_the_range():
    # From -1 to 1: .2 are a tenth, and a gain, as what is claimed is in costs.
    column = Column("a9a/mcc", "A9A MCC", Unit("matthews"))
    layout = replace(CLAIMING, columns=(column,))
    records = call(0, 0.3, 0.5, 0.1, column="a9a/mcc", metric="matthews")
    told = ["100.0 %", "+.1000", "+.1000", "+0 %", "0", "+.1000"]
    assert lines(layout, records) == [["Balanced", "1", "1", "1", *told]]


def test_what_no_single_call_says_is_left_out():
    whole = call(0, 0.3, 0.2, 0.1)
    several = [whole[0], placed(whole[1], meta_tests=2)]
    silent = [whole[0], replace(whole[1], notes={})]
    broken = [replace(whole[0], status="diverged", message="nan"), whole[1]]
    # Claims for one metric say nothing of another that the result is judged by, too.
    other = [
        replace(placed(r, also=(r.spec.metric,), metric=F1.metric), notes=r.notes)
        for r in whole
    ]
    for records in (several, silent, broken, other, whole[1:]):
        assert what_was_claimed(CLAIMING, judge(CLAIMING, records)) == []
        assert claims(CLAIMING, records) is None


def test_a_page_has_section_and_figure_where_the_layout_asks_for_them():
    assert f"\n{CLAIMED}\n" in page_of(CLAIMING, ERRORS)
    assert "![claims.png](claims.png)" in page_of(CLAIMING, ERRORS)
    assert f"\n{CLAIMED}\n" not in page_of(LAYOUT, ERRORS)
    assert "claims" not in draw_all(LAYOUT, ERRORS)
    with pytest.raises(ConfigError, match="must name its `untouched_row`"):
        replace(LAYOUT, claims_row="metricopt")
    with pytest.raises(ConfigError, match="the row 'nobody' it lacks"):
        replace(CLAIMING, claims_row="nobody")


def test_marks_and_intervals_by_hand():
    figure = claims(SIZED, [*ERRORS, *F])
    left, right = figure.axes
    found = bars_of(right)
    assert set(found) == {"200 to observe", "5,000 to observe"}
    points, ends = found["200 to observe"]
    assert points[0] == pytest.approx([0.1, 0.115])
    half = norm.ppf(0.975) * 0.01
    assert ends[0] == pytest.approx([0.115 - half, 0.115 + half])
    assert lines_of(right)[MISSED] == [pytest.approx([0.02, 0.05])]
    # Off by 1.5, 3, 1 and 1.95 errors: levels of 86.6, 99.7, 68.3 and 94.9 %.
    shares = dict(lines_of(left)[HELD])
    assert [shares[100 * level] for level in LEVELS if level in (0.6, 0.8, 0.9)] == [
        0.0,
        25.0,
        50.0,
    ]
    assert shares[99.0] == 75.0
    (band,) = [each for each in left.collections if each.get_label() == BANDED]
    low = 100 * binom.ppf(0.025, 4, 0.5) / 4
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(low)
    assert "4 claims" in figure.get_suptitle()


def real_records(replicate):
    """The untouched network of a replicate and one search on it, on real data."""
    unit = tabular_unit(adapter=BiasSettings(offsets=True))
    made = make_pipeline(unit, replicate)
    for row, queries, settings in (
        ("untouched", 0, {}),
        ("metricopt-outputs", 16, SHORT),
    ):
        spec = method_spec(
            row,
            queries,
            settings=settings,
            rows=1,
            row=row,
            replicate=replicate,
            pipeline=unit,
        )
        yield RunRecord(spec, "done", **judged(run_arm(spec, made), spec, made))


def test_real_calls_are_held_against_their_own_networks():
    layout = make_layout(
        [make_row("untouched"), make_row("metricopt-outputs")],
        [replace(F1, name="cancer/f1", paper_column=None)],
        untouched_row="untouched",
        claims_row="metricopt-outputs",
    )
    pairs = [tuple(real_records(number)) for number in (1, 2)]
    records = [record for pair in pairs for record in pair]
    (calls,) = calls_by_group(layout, judge(layout, records)).values()
    for found, (old, new) in zip(calls, pairs, strict=True):
        gain = new.values("test")[0] - old.values("test")[0]
        assert found.true == pytest.approx(gain)
        assert found.is_adopted == (new.notes["untouched"] == 0)
        # phi = 0 is the untouched network, so it gains nothing.
        assert found.is_adopted or found.true == 0
        assert found.claimed == new.notes["expected_gain"]
    assert [found.is_adopted for found in calls] == [True, False]
