"""A killed and resumed table equals an undisturbed one, and differences are seen."""

import sys
import time
from pathlib import Path

import pytest

from benchmarks.runs.paths import ROOT
from benchmarks.runs.store import RunStore, write_jsonl
from metricopt.errors import MetricOptError
from tests.benchmarks.execution import kills
from tests.benchmarks.execution.kills import (
    Plan,
    Sandbox,
    differences,
    finish,
    kill_after,
    run,
)
from tests.benchmarks.runs.record_cases import make_record, make_spec

SMALL = (
    *(sys.executable, "-P", "-m", "tests.benchmarks.report.small_table", "table3"),
    *("--tier", "smoke", "--replicates", "1", "--workers", "2"),
)


def script(text):
    return (sys.executable, "-c", text)


def test_two_kills_change_nothing(tmp_path, capsys, monkeypatch):
    """Folders where the user stands are called like our packages, and mislead none."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("metricopt", "benchmarks", "tests"):
        (tmp_path / "where" / name).mkdir(parents=True)
        (tmp_path / "where" / name / "__init__.py").write_text("raise SystemExit('no')")
    monkeypatch.chdir(tmp_path / "where")
    assert run(Plan(SMALL, times=2, seed=223), tmp_path) == []
    printed = capsys.readouterr().out
    assert "kill 2 after" in printed
    assert printed.splitlines()[-1].endswith("0 differences")
    records = list((tmp_path / "undisturbed" / "store").rglob("record.json"))
    assert len(records) == 4


def test_a_run_is_killed_or_ends_by_itself(tmp_path):
    site = Sandbox(tmp_path)
    sleep = script("import time; time.sleep(60)")
    assert kill_after(0.3, sleep, site, group=False)
    assert kill_after(0.3, sleep, site, group=True)
    assert not kill_after(60, script("pass"), site, group=True)


def test_a_group_kill_reaches_the_children(tmp_path):
    note = tmp_path / "pid"
    # The options of the command line end up as arguments nobody reads.
    command = ("sh", "-c", f"sleep 60 & echo $! > {note}; wait", "-")
    assert kill_after(2.0, command, Sandbox(tmp_path), group=True)
    child = Path(f"/proc/{note.read_text().strip()}/stat")
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the child is still running after 10 s")


def test_a_run_that_fails_by_itself_is_an_error(tmp_path):
    with pytest.raises(MetricOptError, match=r"a run ended with code 3: it broke"):
        finish(script("import sys; print('it broke'); sys.exit(3)"), Sandbox(tmp_path))


def make_sandbox(folder, **changes):
    """Write what a run of two records leaves behind."""
    site = Sandbox(folder)
    store = RunStore(site.store)
    records = [
        make_record(make_spec("row", replicate), **changes) for replicate in range(2)
    ]
    for record in records:
        store.put(record)
    report = site.results / "table3" / "smoke"
    write_jsonl(report / "records.jsonl", records)
    (report / "table.md").write_text("| .5 |\n")
    return site


def test_time_and_machine_may_differ(tmp_path):
    calm = make_sandbox(tmp_path / "a", seconds={"total": 1.0})
    other = make_sandbox(tmp_path / "b", seconds={"total": 2.0}, environment={"a": "b"})
    (other.results / "table3" / "smoke" / ".table.md.x1").write_text("half")
    assert differences(calm, other) == []


def test_every_kind_of_difference_is_named(tmp_path):
    calm, other = make_sandbox(tmp_path / "a"), make_sandbox(tmp_path / "b", queries=3)
    (other.results / "table3" / "smoke" / "table.md").write_text("| .6 |\n")
    (other.results / "table3" / "smoke" / "table.csv").write_text("")
    first, second = sorted(other.store.rglob("record.json"))
    lost, torn = (str(path.relative_to(other.store)) for path in (first, second))
    first.unlink()
    second.write_text(second.read_text()[:50])
    extra = other.store / "table3" / "smoke" / "more" / "record.json"
    extra.parent.mkdir()
    extra.write_bytes((calm.store / lost).read_bytes())
    found = differences(calm, other)
    assert found[:4] == [
        "table3/smoke/table.csv is missing in the undisturbed results",
        "table3/smoke/table.md differs from that of the undisturbed run",
        f"the record {lost} is lost",
        "the record table3/smoke/more/record.json is too many",
    ]
    assert found[4].startswith(f"the record {torn} is torn: ")
    assert found[5] == "records.jsonl differs in more than time and machine"
    assert len(found) == 6


def test_the_exit_code_tells_what_was_found(monkeypatch, capsys):
    monkeypatch.setattr(kills, "run", lambda plan, folder: [])
    assert kills.main(["--times", "2"]) == 0
    line = "2 kills: 0 differences, tables and records"
    assert capsys.readouterr().out.splitlines() == [line]
    monkeypatch.setattr(kills, "run", lambda plan, folder: ["x differs"])
    assert kills.main([]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "x differs"

    def fail(plan, folder):
        raise MetricOptError("a run ended with code 1: boom")

    monkeypatch.setattr(kills, "run", fail)
    assert kills.main([]) == 2
    assert capsys.readouterr().err == "error: a run ended with code 1: boom\n"
