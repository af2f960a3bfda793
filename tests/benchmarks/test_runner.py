"""Groups of runs that go to one worker."""

from benchmarks.experiments import mismatch, quick
from benchmarks.runner import _groups


def test_runs_that_share_a_value_function_stay_together():
    specs = mismatch.specs("smoke", 1, offline=True)
    groups = _groups(specs)
    assert sum(map(len, groups)) == len(specs)
    assert len(groups) == 2 * len(mismatch.COLUMNS)
    for group in groups:
        assert len({spec.column for spec in group}) == 1
        assert len({spec.row.startswith("metricopt") for spec in group}) == 1


def test_runs_that_share_a_trained_network_stay_together():
    specs = quick.specs("smoke", 2, offline=True)
    tables = [spec for spec in specs if "film" not in str(spec.settings["adapter"])]
    places = [
        (group[0].settings["problem"], group[0].replicate, group[0].block)
        for group in _groups(tables)
    ]
    assert len(places) == len({str(place) for place in places})
