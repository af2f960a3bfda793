"""The command line on a small table that is really run, and errors of its parts."""

import os
import shutil
from types import SimpleNamespace

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.verbs import experiments, plan, verify
from benchmarks.runs.store import RunStore, write_jsonl
from benchmarks.tables.registry import EXPERIMENTS
from metricopt.errors import ConfigError
from tests.benchmarks.report.small_table import small_experiment
from tests.benchmarks.runs.record_cases import make_record

RUN = ("table3", "--tier", "smoke", "--replicates", "1", "--workers", "1")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch, tmp_path_factory):
    """Give every test folders of its own, but one cache of artifacts."""
    cache = tmp_path_factory.getbasetemp() / "cli-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    monkeypatch.setenv("METRICOPT_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(experiments, "COMMITTED_RESULTS", tmp_path / "results")
    monkeypatch.setattr(verify, "COMMITTED_RESULTS", tmp_path / "results")
    monkeypatch.setattr(experiments, "OWN_RESULTS", tmp_path / "results" / "own")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small(monkeypatch):
    small = small_experiment("table3")
    monkeypatch.setitem(EXPERIMENTS._units, "table3", small)
    return small


def fails(capsys, *arguments):
    """Return the one sentence a command ends with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in captured.err + captured.out
    return lines[0].removeprefix("error: ")


def test_missing_data_offline(tmp_path, capsys):
    text = fails(capsys, "table3", "--tier", "local", "--offline")
    assert text.startswith("a9a (full) needs ")
    assert str(tmp_path / "data" / "a9a") in text
    assert text.endswith("run `./reproduce.sh data fetch a9a`")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "place", [("--data", "file"), ("--store", "file"), ("--store", "file/store")]
)
def test_a_place_that_is_a_file_or_below_one(tmp_path, capsys, small, place):
    (tmp_path / "file").touch()
    text = fails(capsys, *RUN, *place)
    assert text == f"expected a folder, but {tmp_path / 'file'} is a file"


def test_nothing_was_run(tmp_path, capsys):
    text = fails(capsys, "report", "table3", "--tier", "smoke")
    assert text == "no run of table3 (smoke) is finished yet"
    text = fails(capsys, "verify", "table3", "--tier", "smoke")
    assert text == f"there is no report of table3 in {tmp_path / 'results'}"


def test_plan_counts_what_is_missing(capsys, small):
    assert main(["plan", "table3", "--tier", "smoke", "--replicates", "2"]) == 0
    header, row = capsys.readouterr().out.splitlines()[:2]
    assert header.split()[:4] == ["experiment", "tier", "runs", "missing"]
    assert row.split()[:4] == ["table3", "smoke", "8", "8"]


def test_plan_needs_no_data(tmp_path, capsys):
    command = ["plan", "table1", "table3", "--tier", "paper", "--replicates", "1"]
    assert main(command) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["table1", "table3"]
    assert not (tmp_path / "data").exists()


def needs(capsys, tier):
    """The GPU hours and the gigabytes of features that a plan tells of Table 5."""
    assert main(["plan", "table5", "--tier", tier, "--replicates", "1"]) == 0
    header, row = capsys.readouterr().out.splitlines()[:2]
    places = [header.index(name) for name in ("GPU hours", "features GB")]
    return [float(row[place:].split()[0]) for place in places]


def test_plan_tells_gpu_hours_and_features_of_networks(capsys):
    assert needs(capsys, "smoke") == [0.0, 0.0]
    hours, gigabytes = needs(capsys, "paper")
    # Two networks, however many runs share them: 30 epochs of 53,596 images, three
    # times 8.2 GFLOP each, at 20 TFLOP/s.
    assert hours == pytest.approx(2 * 30 * 53_596 * 3 * 8.2e9 / 20e12 / 3600, abs=0.1)
    # Two maps of 2048 x 7 x 7 numbers.
    assert gigabytes == pytest.approx(120_053 * 2 * 2_048 * 49 * 4 / 1e9, abs=0.1)


def recorded(tmp_path, small, **seconds):
    """Put records with these seconds into store and results; return the latter."""
    specs = small.specs("smoke", 1, True)
    records = [make_record(spec, seconds=seconds) for spec in specs]
    for record in records:
        RunStore(tmp_path / "store").put(record)
    path = tmp_path / "results" / "table3" / "smoke" / "records.jsonl"
    path.parent.mkdir(parents=True)
    write_jsonl(path, records)
    return path


def test_plan_predicts_the_time_with_some_workers(tmp_path, capsys, small):
    recorded(tmp_path, small, total=3_600)
    shutil.rmtree(tmp_path / "store")
    command = ("plan", "table3", "--replicates", "2", "--tier", "smoke")
    assert main([*command, "--workers", "3"]) == 0
    header, row = capsys.readouterr().out.splitlines()[:2]
    assert header.split()[-6:] == ["hours", "with", "3", "work", "longest", "path"]
    # Eight runs of an hour, none of which waits for another.
    assert row.split()[-4:] == ["3", "8", "1", "1"]


def test_plan_takes_hours_of_the_same_tier_alone(tmp_path, capsys, small):
    """A value function's seconds are part of the total of the run that trained it."""
    path = recorded(tmp_path, small, **{"total": 7_200, "value function": 7_000})
    command = ("plan", "table3", "--replicates", "2", "--tier", "smoke")
    assert main(command) == 0
    same = capsys.readouterr().out.splitlines()[1].split()[4:]
    path.parent.rename(path.parent.with_name("local"))
    assert main(command) == 0
    other = capsys.readouterr().out.splitlines()[1].split()[4:]
    # Of twice four runs, the first four are done.
    assert same[0] == f"{4 * 2 / min(os.cpu_count() or 1, 16):.2f}"
    assert other[0] == "unknown"
    shutil.rmtree(tmp_path / "store")
    assert main([*command, "--workers", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == ">0"


def counts(capsys, *arguments):
    """Run the small table; return how many runs were made, and of how many."""
    assert main([*RUN, *arguments]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    words = line.removeprefix("table3 (smoke): ").split()
    return int(words[0]), int(words[2])


def test_done_runs_are_not_repeated_and_lost_ones_are(tmp_path, capsys, small):
    assert counts(capsys) == (4, 4)
    report = tmp_path / "results" / "own" / "table3" / "smoke"
    before = {path: path.stat().st_mtime_ns for path in report.iterdir()}
    tables = {name: (report / name).read_bytes() for name in ("table.md", "table.csv")}
    assert {"records.jsonl", "table.tex", "time.md"} <= {p.name for p in before}

    assert counts(capsys) == (0, 4)
    assert {path: path.stat().st_mtime_ns for path in report.iterdir()} == before

    specs = small.specs("smoke", 1, True)
    store = RunStore(tmp_path / "store")
    kept = {spec: store.path(spec).stat().st_mtime_ns for spec in specs}
    store.path(specs[2]).unlink()
    assert counts(capsys) == (1, 4)
    changed = [s for s in specs if store.path(s).stat().st_mtime_ns != kept[s]]
    assert changed == [specs[2]]
    assert {name: (report / name).read_bytes() for name in tables} == tables

    assert counts(capsys, "--fresh") == (4, 4)
    assert {name: (report / name).read_bytes() for name in tables} == tables
    check_reports(report, capsys)


def check_reports(report, capsys):
    """Check `verify` and `report` on the results of a run."""
    arguments = ["verify", "table3", "--tier", "smoke", "--results", "results/own"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 reports rebuilt from their records: 0 problems"
    ]
    page = report / "table.csv"
    intact = page.read_text()
    page.write_text(intact.replace("0.", "0.1", 1))
    assert main(arguments) == 1
    problem, summary = capsys.readouterr().out.splitlines()
    assert problem.startswith(f"{page} line ")
    assert summary.endswith("1 problems")

    assert main(["report", "table3", "--tier", "smoke", "--replicates", "1"]) == 0
    assert page.read_text() == intact


def test_plan_tells_what_missing_networks_take(capsys, small, monkeypatch):
    """As long as those of other replicates took that are released."""
    missing = [
        SimpleNamespace(name=n, digest=n, is_ready=False) for n in ("a-r1", "b-r0")
    ]
    monkeypatch.setattr(plan, "networks_of", lambda specs: missing)
    costs = {"a-r0": (3_600.0, 2_000_000), "a-r2": (7_200.0, 4_000_000)}
    monkeypatch.setattr(plan, "released_costs", lambda: costs)
    assert main(["plan", "table3", "--tier", "smoke", "--replicates", "2"]) == 0
    told = "training 1 of its networks takes 1.5 hours, one after the other, and 3 MB"
    assert told in capsys.readouterr().out


def test_plan_of_all_leaves_out_what_needs_a_missing_package(
    capsys, small, monkeypatch
):
    def needs(job, store):
        raise ConfigError("this detector needs detectron2")

    monkeypatch.setattr(plan.Missing, "of", needs)
    monkeypatch.setattr(plan, "jobs_of", lambda *_, **__: [SimpleNamespace(label="t")])
    assert main(["plan"]) == 0
    assert "t is left out: this detector needs detectron2" in capsys.readouterr().out
    assert "needs detectron2" in fails(capsys, "plan", "table3")
