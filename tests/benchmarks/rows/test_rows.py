"""Rows: what they need, in words, and what a table makes of them."""

from dataclasses import replace

import pytest

from benchmarks.arms.contract import sees
from benchmarks.problems.images.tiers import cifar10
from benchmarks.problems.retrieval.tiers import Retrieval
from benchmarks.problems.tabular.tiers import DIGIT
from benchmarks.rows import controls, metricopt, on_outputs, post_hoc, rivals, tuners
from benchmarks.rows.contract import ROWS, Row
from benchmarks.runs.spec import Unit
from benchmarks.tables.registry import find_experiment
from benchmarks.tables.table import LeftOut, Place, all_rows, brief_rows, rows_in
from metricopt.errors import ConfigError

BINARY, IMAGES = DIGIT.at("smoke"), cifar10("smoke")
RETRIEVAL = Retrieval.at("smoke", "fastap")
MCR, AUCPR = Unit("mcr"), Unit("aucpr")


@pytest.mark.parametrize(
    ("row", "problem", "metric", "reason"),
    [
        (post_hoc.THRESHOLD_SHIFT, BINARY, MCR, ""),
        (post_hoc.THRESHOLD_SHIFT, IMAGES, MCR, "needs two classes"),
        (post_hoc.CLASS_OFFSETS, IMAGES, MCR, ""),
        (post_hoc.CLASS_OFFSETS, BINARY, MCR, "needs more than two classes"),
        (post_hoc.FW_EG, IMAGES, AUCPR, "moves all scores of a class"),
        (post_hoc.FW_EG, RETRIEVAL, MCR, "needs outputs that score classes"),
        (post_hoc.THRESHOLD_GRID, BINARY, AUCPR, "moves all scores of a class"),
        (tuners.ONE_VS_REST, IMAGES, MCR, ""),
        (tuners.ONE_VS_REST, BINARY, MCR, "needs more than two classes"),
        (tuners.FAIRLEARN, BINARY, MCR, ""),
        (tuners.FAIRLEARN, IMAGES, MCR, "needs two classes"),
        (tuners.OPTUNA_OFFSETS, IMAGES, MCR, ""),
        (tuners.OPTUNA_OFFSETS, BINARY, MCR, ""),
        (tuners.OPTUNA_OFFSETS, BINARY, AUCPR, "moves all scores of a class"),
        (rivals.LQ_CMA_ES, IMAGES, MCR, "needs d <= 32"),
        (rivals.LQ_CMA_ES, BINARY, MCR, ""),
        (on_outputs.UNSORTED, IMAGES, MCR, "is defined for worst-class-error alone"),
        (on_outputs.UNSORTED, IMAGES, Unit("worst-class-error"), ""),
        (metricopt.WITH_500_QUERIES, BINARY, MCR, "makes 500 queries, more than"),
        (controls.CMA_ES, RETRIEVAL, Unit("mean-recall"), ""),
    ],
)
def test_a_row_says_in_words_why_it_does_not_suit(row, problem, metric, reason):
    found = row.why_not(problem, metric)
    assert reason in found
    assert bool(found) == bool(reason)


def test_rows_are_registered_once_and_stand_family_by_family():
    rows = all_rows()
    names = [row.name for row in rows]
    assert len(names) == len(set(names)) >= 35
    assert names[0] == "cross-entropy" and names[-1] == "oracle-test"
    assert set(names) >= set(ROWS)
    families = list(dict.fromkeys(row.family for row in rows))
    assert len(families) == len({row.family for row in rows}) == 9


def test_tuners_stand_in_tables_that_name_them_alone():
    rows = [row for row in vars(tuners).values() if isinstance(row, Row)]
    assert rows and not {row.name for row in rows} & set(ROWS)
    run = tuners.OPTUNA_OFFSETS.run(replace(IMAGES, reach=2.5), MCR)
    assert (run.queries, run.arm.settings) == (0, {"reach": 2.5})
    for row in rows:
        assert row.sees == sees(row.run(IMAGES, MCR).arm)


def test_budgets_are_fields_of_variants():
    varied = [row for row in all_rows() if row.budget is not None]
    assert {row.entry for row in varied} == {"metricopt", "metricopt-outputs"}
    for row in varied:
        assert row.entry == row.variant_of != row.name
        assert row.run(BINARY, MCR).queries == row.budget
    assert controls.CMA_ES.entry == "cma-es"


def test_brief_rows_stand_for_their_families():
    names = [row.name for row in brief_rows(RETRIEVAL, Unit("mean-recall"))]
    assert names == [
        *("cross-entropy", "loss-only", "loss-only-dense"),
        *("random-search", "cma-es", "guided-cma", "metricopt", "portfolio"),
        *("metricopt-outputs", "cma-es-no-harm", "oracle-test"),
    ]
    images = [row.name for row in brief_rows(IMAGES, MCR, controls.CMA_ES)]
    assert "class-offsets" in images and "cma-es" not in images


def test_bases_and_rows_of_the_paper_are_those_the_table_has():
    shown = (controls.LOSS_ONLY_ROW, controls.CMA_ES, metricopt.METRICOPT)
    alone = Place("balanced", BINARY, MCR, rows=shown)
    *_, search, ours = rows_in([alone], None, "Table 3")
    assert (search.base_row, ours.base_row) == ("loss-only", "loss-only")
    assert (search.paper_row, ours.paper_row) == (None, "metricopt")
    renamed = Row("rmsprop", "untouched")
    other = Place("balanced", BINARY, MCR, rows=(renamed, controls.CMA_ES))
    _, search = rows_in([other], "rmsprop", None)
    assert search.base_row == "rmsprop"


def test_what_is_left_out_is_told_with_the_reason():
    reason = LeftOut("to save time", (controls.CMA_ES, post_hoc.CLASS_OFFSETS))
    place = Place("balanced", BINARY, MCR, left_out=(reason,))
    assert place.why_not(controls.CMA_ES) == "to save time"
    assert place.why_not(post_hoc.CLASS_OFFSETS) == "needs more than two classes"
    assert controls.CMA_ES.name not in {row.name for row in place.standing()}
    told = find_experiment("mismatch").left_out("local")
    assert "random search" in told["left out to save time: Tables 1 to 3 have it"]
    partly = find_experiment("table3").left_out("local")
    assert "Lovasz-Softmax (LO)" in partly["in part: is defined for jaccard alone"]
    (covtype,) = [text for text in partly if "CoverType" in text]
    assert covtype.startswith("in part: ")
    assert "adaptive surrogates" in partly[covtype]


def test_a_place_that_names_its_rows_neither_adds_nor_leaves_out():
    reason = LeftOut("to save time", (controls.CMA_ES,))
    for more in ({"own": (controls.CMA_ES,)}, {"left_out": (reason,)}):
        with pytest.raises(ConfigError, match="`own` and `left_out` must be empty"):
            Place("balanced", BINARY, MCR, rows=(controls.CMA_ES,), **more)
    with pytest.raises(ConfigError, match="names of registered rows, got cma-es in"):
        Place("balanced", BINARY, MCR, own=(controls.CMA_ES,))


def test_an_order_that_is_given_is_kept():
    places = [Place("balanced", BINARY, MCR)]
    order = (rivals.PORTFOLIO, controls.CMA_ES)
    names = [row.name for row in rows_in(places, "cross-entropy", None, order)]
    assert names[:3] == ["portfolio", "cma-es", "cross-entropy"]


def test_a_row_sees_what_can_be_seen_and_runs_what_it_says():
    with pytest.raises(ConfigError, match="expected row 'spy' to see one of metric"):
        Row("spy", "a spy", sees="everything")
    with pytest.raises(ConfigError, match="without `run` cannot be run on digit-8"):
        Row("shown", "only shown").run(BINARY, MCR)
    changed = controls.CMA_ES.running(meta_tests=7).run(BINARY, MCR)
    assert changed.meta_tests == 7
    assert changed.arm == controls.CMA_ES.run(BINARY, MCR).arm
