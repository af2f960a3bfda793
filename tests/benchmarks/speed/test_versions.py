"""Two versions of the library do the same work; which is faster, no test may ask."""

import subprocess

import pytest

from benchmarks.runs.paths import ROOT
from benchmarks.speed import finetune_work, versions
from metricopt.errors import ConfigError


def test_a_revision_is_written_out(tmp_path):
    committed = subprocess.run(
        ["git", "-C", str(ROOT), "show", "HEAD:metricopt/__init__.py"],
        check=True,
        capture_output=True,
    )
    folder = versions.library_of("HEAD", tmp_path)
    assert (folder / "metricopt" / "__init__.py").read_bytes() == committed.stdout
    assert {path.name for path in folder.iterdir()} == {"metricopt"}


def test_an_unknown_revision(tmp_path):
    with pytest.raises(ConfigError, match="must be a revision of this repository"):
        versions.library_of("no-such-revision", tmp_path)


def test_the_ratio_is_that_within_turns(monkeypatch, capsys):
    class Scripted:
        def __init__(self, library):
            self.slow = 1.0 if library == ROOT else 2.0
            self.turn = 0

        def seconds(self, name):
            self.turn += 1
            return self.slow * self.turn

        def close(self):
            closed.append(self.slow)

    closed = []
    monkeypatch.setattr(versions, "Worker", Scripted)
    monkeypatch.setattr(versions.finetune_work, "WORK", {"some work": None})
    assert versions.main(["HEAD"]) == 0
    assert sorted(closed) == [1.0, 2.0]
    printed = capsys.readouterr().out
    assert "some work, HEAD" in printed and "8.00 s" in printed
    assert "4.00 s" in printed and "0.50 (0.50 to 0.50)" in printed


ECHO = """import sys
for line in sys.stdin:
    print({"known": 0.5}[line.strip()], flush=True)
"""


def test_a_worker_takes_one_piece_of_work_after_the_other(monkeypatch, tmp_path, capfd):
    program = tmp_path / "work.py"
    program.write_text(ECHO)
    monkeypatch.setattr(versions.finetune_work, "__file__", str(program))
    worker = versions.Worker(ROOT)
    try:
        assert [worker.seconds("known") for _ in range(2)] == [0.5, 0.5]
        with pytest.raises(ConfigError, match="cannot do 'unknown': see above"):
            worker.seconds("unknown")
    finally:
        worker.close()
    assert "KeyError: 'unknown'" in capfd.readouterr().err


def test_every_piece_of_work_is_a_call_of_the_library(monkeypatch):
    calls = []
    monkeypatch.setattr(finetune_work, "run", lambda *given: calls.append(given))
    for work in finetune_work.WORK.values():
        work()
    assert [queries for *_, queries in calls] == [50, 300, 300, 300]
    model, metric, *_ = calls[-1]
    monkeypatch.undo()
    finetune_work.run(model, metric, "random-search", 20)


def test_usage(capsys):
    assert versions.main([]) == 2
    assert "REV" in capsys.readouterr().err
