"""Worker processes: groups are dealt out, and no worker outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.execution.processes import run_groups
from metricopt.errors import MetricOptError
from tests.benchmarks.execution import group_work

# Generous: each process imports torch, on a machine that may be busy.
PATIENCE = 120.0


def is_running(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s"
        time.sleep(0.05)


def pids(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_each_group_is_done_by_one_process(tmp_path):
    reports = []
    groups = [["a", "b"], ["c"], ["d", "e"]]
    run_groups(groups, str(tmp_path), 2, group_work.note_process, reports.append)
    assert sorted(reports) == ["a", "b", "c", "d", "e"]
    found = pids(tmp_path)
    assert sorted(found) == ["a", "b", "c", "d", "e"]
    assert found["a"] == found["b"] and found["d"] == found["e"]
    assert str(os.getpid()) not in found.values() and len(set(found.values())) <= 2
    wait_until(lambda: not any(map(is_running, found.values())))


def test_a_killed_worker_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(MetricOptError) as caught:
        run_groups([["a"], ["b"]], str(tmp_path), 2, group_work.kill_itself, print)
    assert str(caught.value) == (
        "a worker process was killed, maybe for want of memory; finished runs are "
        "kept, and the same command goes on"
    )


def test_an_error_ends_the_other_workers_at_once(tmp_path):
    started = time.monotonic()
    with pytest.raises(ValueError, match="the group is broken"):
        run_groups([["long"], ["broken"]], str(tmp_path), 2, group_work.fail, print)
    assert time.monotonic() - started < group_work.LONG / 2
    wait_until(lambda: not is_running(pids(tmp_path)["long"]))


@pytest.fixture
def parent(tmp_path):
    """A process with two workers, each of them at a long group."""
    command = [sys.executable, "-m", "tests.benchmarks.execution.group_work"]
    places = {name: tmp_path / f"{name}.txt" for name in ("out", "errors")}
    folder = tmp_path / "pids"
    folder.mkdir()
    with places["out"].open("wb") as out, places["errors"].open("wb") as errors:
        process = subprocess.Popen([*command, str(folder)], stdout=out, stderr=errors)
    wait_until(lambda: process.poll() is not None or len(pids(folder)) == 2)
    yield process
    process.kill()
    process.wait()


def children_of(pid):
    """Every process that has this parent: its workers and their helpers."""
    parents = {
        path.parent.name: path.read_text().rpartition(")")[2].split()[1]
        for path in Path("/proc").glob("[0-9]*/stat")
    }
    return [child for child, parent in parents.items() if parent == str(pid)]


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_parent(parent, tmp_path, interrupt):
    children = children_of(parent.pid)
    workers = set(pids(tmp_path / "pids").values())
    assert len(workers) == 2 and workers < set(children)
    # The parent alone, and not its process group as a terminal would.
    parent.send_signal(interrupt)
    assert parent.wait(PATIENCE) != 0
    wait_until(lambda: not any(map(is_running, children)))
    if interrupt == signal.SIGINT:
        errors = (tmp_path / "errors.txt").read_text().splitlines()
        assert errors[-1] == "KeyboardInterrupt"
        # What was done before is reported.
        assert (tmp_path / "out.txt").read_text().split() == ["one", "two"]
