"""`--fresh` and what ends it: a measured record stays until there is a new one."""

import os
import signal
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from metricopt.errors import DataError
from tests.benchmarks.cli.toy_suite import install, run
from tests.benchmarks.runs.record_cases import make_record, make_spec

SPEC = make_spec()
FAILED = make_record(SPEC, (), status="failed", message="no data")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    return install(monkeypatch, tmp_path)


def specs():
    return find_experiment("table3").specs("local", None, True)


def files(path):
    return sorted(each.name for each in path.parent.iterdir())


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_a_failed_run_does_not_replace_a_measured_record(tmp_path, status):
    store = RunStore(tmp_path)
    old = make_record(SPEC, status=status)
    path = store.put(old)
    store.mark_stale([SPEC])
    beside = store.put(FAILED)
    assert store.get(SPEC) == old
    assert "no data" in beside.read_text()
    assert store.stale([SPEC]) == [SPEC]
    store.put(make_record(SPEC, [0.25]))
    assert store.get(SPEC).values("test") == [0.25]
    assert files(path) == ["record.json"]


def test_a_failed_run_replaces_none_and_one_that_failed(tmp_path):
    store = RunStore(tmp_path)
    for message in ("no data", "no weights"):
        failed = make_record(SPEC, (), status="failed", message=message)
        path = store.put(failed)
        assert store.get(SPEC) == failed
    assert files(path) == ["record.json"]


def test_failed_repetitions_are_told_and_tried_again(suite, capsys, monkeypatch):
    run("table3")
    first, *others = specs()

    def half(specs, store, *, workers, redo=()):
        store.put(make_record(first, seeds={"call": 2}))
        for spec in others:
            store.put(make_record(spec, (), status="failed", message="no data"))
        return list(specs)

    with monkeypatch.context() as patch:
        runner = sys.modules["benchmarks.execution.runner"]
        patch.setattr(runner, "run_all", half)
        capsys.readouterr()
        run("table3", "--fresh")
    assert capsys.readouterr().err == (
        "3 of 4 repeated runs failed: their old records are used, --fresh tries them "
        f"again, and {suite.store.path(others[0])}.failed says why\n"
    )
    assert [suite.calls(spec) for spec in specs()] == [2, 1, 1, 1]
    run("table3", "--fresh")
    assert suite.ran[-1] == others
    assert suite.store.stale(specs()) == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, DataError("no data"), MemoryError]
)
@pytest.mark.parametrize("verb", ["quick", "table3", "all"])
def test_whatever_ends_the_preparation_keeps_all_records(
    suite, monkeypatch, verb, error
):
    run(verb)
    records = {
        path: path.read_bytes() for path in suite.store.root.rglob("record.json")
    }

    def broken(specs):
        raise error

    module = sys.modules["benchmarks.execution.runner"]
    monkeypatch.setattr(module, "prepare", broken)
    with nullcontext() if error is not MemoryError else pytest.raises(MemoryError):
        assert main([verb, "--fresh"]) == (130 if error is KeyboardInterrupt else 2)
    assert {path: path.read_bytes() for path in records} == records


def test_marks_are_set_for_all_records_or_none(tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    several = [make_spec(replicate=number) for number in range(4)]
    for spec in several:
        store.put(make_record(spec))
    touch = Path.touch

    def full(path, *arguments, **options):
        if path.parent == store.path(several[2]).parent:
            raise OSError(28, "No space left on device", str(path))
        touch(path, *arguments, **options)

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(OSError, match="No space"):
        store.mark_stale(several)
    assert store.stale(several) == []


def killed(*names):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["fsync", "replace", "unlink"])
def test_a_kill_in_the_middle_of_a_write_leaves_a_whole_record(tmp_path, moment):
    store = RunStore(tmp_path)
    store.put(make_record(SPEC, [0.5]))
    store.mark_stale([SPEC])
    with warnings.catch_warnings():
        # Newer versions warn of forks; the child writes one file.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        setattr(os, moment, killed)
        store.put(make_record(SPEC, [0.25]))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    # The mark goes after the record has come.
    found = 0.25 if moment == "unlink" else 0.5
    assert store.get(SPEC).values("test") == [found]
    assert store.stale([SPEC]) == [SPEC]
