"""Records of several stores in one: all or none, and no conflict unseen."""

import re

import pytest

from benchmarks.runs.merge import merge, strangers
from benchmarks.runs.store import RunStore
from metricopt.errors import DataError
from tests.benchmarks.runs.record_cases import make_record, make_spec

SPECS = [make_spec(replicate=n) for n in range(4)]


@pytest.fixture
def stores(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return [RunStore(tmp_path / name) for name in ("one", "two", "all")]


def test_records_of_all_stores_come_together(stores):
    one, two, whole = stores
    for store, spec in zip((one, two, whole), SPECS, strict=False):
        store.put(make_record(spec))
    # The same run made twice differs in time and machine alone; the first one stays.
    two.put(make_record(SPECS[0], seconds={"total": 9.0}, environment={"os": "x"}))
    assert merge([one, two], whole, SPECS) == [1, 1]
    assert [whole.get(spec) is not None for spec in SPECS] == [True] * 3 + [False]
    assert whole.get(SPECS[0]).seconds == {}
    assert merge([one, two], whole, SPECS) == [0, 0]


@pytest.mark.parametrize("holder", [1, 2])
def test_different_values_of_one_run_are_refused_before_anything_is_written(
    stores, holder
):
    stores[0].put(make_record(SPECS[0]))
    stores[0].put(make_record(SPECS[1], [0.5]))
    stores[holder].put(make_record(SPECS[1], [0.25]))
    names = [stores[place].path(SPECS[1]) for place in (holder, 0)]
    with pytest.raises(DataError, match="hold different values of one run") as caught:
        merge(stores[:2], stores[2], SPECS)
    assert all(str(name) in str(caught.value) for name in names)
    assert stores[2].get(SPECS[0]) is None


def test_a_failed_run_gives_way_to_a_measured_one(stores):
    one, two, whole = stores
    failed = make_record(SPECS[0], [], status="failed", message="no memory")
    other = make_record(SPECS[0], [], status="failed", message="no disk")
    one.put(failed)
    two.put(other)
    whole.put(other)
    assert merge([one, two], whole, SPECS) == [0, 0]
    two.put(make_record(SPECS[0]))
    assert merge([one, two], whole, SPECS) == [0, 1]
    assert whole.get(SPECS[0]).status == "done"
    assert merge([one, two], whole, SPECS) == [0, 0]


def test_what_is_no_store_or_damaged_is_refused(stores, tmp_path):
    missing = RunStore(tmp_path / "nowhere")
    with pytest.raises(DataError, match=re.escape(f"and {missing.root} is no folder")):
        merge([missing], stores[2], SPECS)
    path = stores[0].put(make_record(SPECS[1]))
    path.write_text(path.read_text()[:40])
    stores[1].put(make_record(SPECS[0]))
    with pytest.raises(DataError, match="is damaged"):
        merge(stores[:2], stores[2], SPECS)
    assert stores[2].get(SPECS[0]) is None


def test_records_of_other_runs_are_counted(stores):
    store = stores[0]
    for spec in (SPECS[0], make_spec("other"), make_spec(experiment="table1")):
        store.put(make_record(spec))
    assert strangers(store, [("table3", "smoke")], SPECS) == 1
    assert strangers(store, [("table3", "local")], SPECS) == 0
