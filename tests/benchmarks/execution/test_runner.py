"""The runner: groups, what is run and what is not, threads, workers."""

from dataclasses import replace

import pytest
import torch

from benchmarks.execution.runner import in_groups, run_all, run_group
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.spec import Unit
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import method_spec


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "store")


pytestmark = pytest.mark.usefixtures("shared_cache")


def test_runs_that_share_a_value_function_stay_together():
    specs = find_experiment("mismatch").specs("smoke", 1, offline=True)
    groups = in_groups(specs)
    assert sum(map(len, groups)) == len(specs)
    # With a value function of phi, without, and without but with output offsets.
    assert len(groups) == 3 * len({spec.column for spec in specs})
    guided = {"metricopt", "metricopt-adam", "metricopt-mirror"}
    for group in groups:
        assert len({spec.column for spec in group}) == 1
        rows = {spec.row for spec in group}
        assert rows == guided or not rows & guided


def test_runs_that_share_a_trained_network_stay_together():
    specs = find_experiment("quick").specs("smoke", 2, offline=True)
    tables = [spec for spec in specs if spec.pipeline.name == "tabular"]
    groups = in_groups(tables)
    places = [(canonical(encode(g[0].pipeline)), g[0].replicate) for g in groups]
    assert len(places) == len(set(places)) == 8
    for group, (pipeline, replicate) in zip(groups, places, strict=True):
        assert {canonical(encode(spec.pipeline)) for spec in group} == {pipeline}
        assert {spec.replicate for spec in group} == {replicate}
    # Columns of one pipeline are one turn.
    assert {len({spec.column for spec in group}) for group in groups} == {1, 2}
    assert sorted(spec.cell for group in groups for spec in group) == sorted(
        spec.cell for spec in tables
    )


def test_what_was_run_is_not_run_again_unless_asked_for(store):
    specs = [method_spec("untouched", row=row) for row in ("one", "two")]
    assert run_all(specs[:1], store, workers=1) == specs[:1]
    assert run_all(specs, store, workers=1) == specs[1:]
    assert run_all(specs, store, workers=1) == []
    before = [store.path(spec).stat().st_mtime_ns for spec in specs]
    store.mark_stale(specs)
    redo = {specs[1].digest}
    assert run_all(specs, store, workers=1, redo=redo) == specs[1:]
    after = [store.path(spec).stat().st_mtime_ns for spec in specs]
    assert after[0] == before[0] and after[1] > before[1]
    assert store.stale(specs) == specs[:1]


def test_two_specs_for_one_place_are_refused_before_any_run(store):
    specs = [method_spec("untouched"), method_spec("random-search", 4)]
    with pytest.raises(ConfigError, match="expected one spec per run, got two for"):
        run_all(specs, store, workers=1)
    assert not store.root.exists()


def test_a_group_runs_on_one_thread_and_gives_the_others_back(store):
    torch.set_num_threads(2)
    group = [method_spec("untouched", row=row) for row in ("one", "two")]
    seen = []
    run_group(group, store, lambda name: seen.append((name, torch.get_num_threads())))
    assert seen == [("cancer/f1 one", 1), ("cancer/f1 two", 1)]
    assert torch.get_num_threads() == 2
    unknown = replace(group[0], pipeline=Unit("nope"))
    with pytest.raises(ConfigError, match="unknown pipeline 'nope'"):
        run_group([unknown], store, seen.append)
    assert torch.get_num_threads() == 2


def test_workers_make_the_records_that_one_process_makes(tmp_path):
    specs = [
        method_spec("random-search", 4, row="search", replicate=replicate)
        for replicate in (0, 1)
    ]
    stores = [RunStore(tmp_path / name) for name in ("alone", "together")]
    for store, workers in zip(stores, (1, 2), strict=True):
        assert run_all(specs, store, workers=workers) == specs
    for spec in specs:
        alone, together = (replace(s.get(spec), seconds={}) for s in stores)
        assert alone == together and alone.finished
