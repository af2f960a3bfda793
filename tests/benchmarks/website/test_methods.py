import shutil

import pytest

from benchmarks.report.fair_summary import matches, places
from benchmarks.runs.paths import COMMITTED_RESULTS
from benchmarks.runs.spec import Arm
from benchmarks.website.methods import methods, unit_of
from benchmarks.website.reports import load


@pytest.fixture(scope="module")
def mismatch(tmp_path_factory):
    """The report of one table."""
    folder = tmp_path_factory.mktemp("results")
    shutil.copytree(COMMITTED_RESULTS / "mismatch", folder / "mismatch")
    return load(folder)


@pytest.fixture(scope="module")
def standings(mismatch):
    return {s.row.name: s for m in methods(mismatch) for s in m.standings}


@pytest.mark.parametrize(
    ("arm", "unit"),
    [
        (Arm("method", "cma-es"), "cma-es"),
        (Arm("no-harm", "cma-es"), "no-harm"),
        (Arm("threshold-grid"), "threshold-grid"),
        (Arm("theta", "ala"), "ala"),
    ],
)
def test_a_row_is_described_by_what_fills_it(arm, unit):
    assert unit_of(arm) == unit


def test_regret_and_rank_are_means_over_columns(mismatch, standings):
    (report,) = mismatch
    names = [column.name for column in report.layout.columns]
    found = [
        matches(places(report.layout, report.records, "natural", [name]), 50)[0]
        for name in names
    ]
    regrets = [match.costs["metricopt-outputs"] - match.best for match in found]
    ranks = [
        1
        + sum(cost < match.costs["metricopt-outputs"] for cost in match.costs.values())
        for match in found
    ]
    within = standings["metricopt-outputs"].within[50]
    assert within.columns == len(names) == 5
    assert within.regret == pytest.approx(sum(regrets) / 5)
    assert within.rank == pytest.approx(sum(ranks) / 5)


def test_wins_are_columns_without_regret_and_losses_the_farthest(standings):
    for standing in standings.values():
        assert all(spot.regret == 0 for spot in standing.wins)
        regrets = [spot.regret for spot in standing.losses]
        assert regrets == sorted(regrets, reverse=True) and 0 not in regrets
    assert any(standing.wins for standing in standings.values())


def test_rows_that_see_more_are_not_ranked(standings):
    assert not standings["oracle-test"].within
    assert not standings["dictionary"].within


def test_methods_of_one_file_are_told_apart(mismatch):
    titles = {m.name: m.title for m in methods(mismatch)}
    assert titles["loss-only"] != titles["loss-only-dense"]
    assert "harm" in titles["no-harm"] and "test" in titles["oracle"]
