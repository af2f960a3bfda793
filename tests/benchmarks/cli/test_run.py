"""The verbs of experiments: where reports go, and what `--fresh` keeps."""

import os
import re
import shutil
import subprocess

import pytest

from benchmarks.__main__ import main
from benchmarks.runs import paths
from benchmarks.runs.paths import ROOT
from benchmarks.runs.store import write_jsonl
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.cli.toy_suite import install, run
from tests.benchmarks.runs.record_cases import make_record


@pytest.fixture
def suite(tmp_path, monkeypatch):
    return install(monkeypatch, tmp_path)


def specs(tier="local", replicates=None):
    return find_experiment("table3").specs(tier, replicates, True)


def commit_records(suite, tier="local"):
    """Put records of another machine into the checkout."""
    path = suite.checkout / "results" / "table3" / tier / "records.jsonl"
    records = [make_record(spec, [0.25]) for spec in specs(tier)]
    path.parent.mkdir(parents=True)
    write_jsonl(path, records)
    return path, records


def git(folder, *arguments):
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_what_a_user_runs_leaves_the_checkout_clean(suite):
    suite.checkout.mkdir()
    shutil.copy(ROOT / ".gitignore", suite.checkout)
    git(suite.checkout, "init", "--quiet")
    git(suite.checkout, "add", ".")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    git(suite.checkout, *identity, "commit", "--quiet", "-m", "start")
    run("quick")
    run("table3", "--tier", "smoke")
    run("report", "table3", "--tier", "smoke")
    assert (suite.checkout / "results/own/quick/local/table.md").is_file()
    assert (suite.checkout / "results/own/table3/smoke/table.md").is_file()
    assert git(suite.checkout, "status", "--porcelain") == ""
    run("table3", "--tier", "smoke", "--commit-results")
    assert git(suite.checkout, "status", "--porcelain") == "?? results/\n"


def test_a_report_shows_the_committed_figures_beside_those_of_the_user(suite):
    _, records = commit_records(suite)
    run("table3")
    run("report", "table3", "--results", "mine")
    run("table3", "--tier", "smoke")
    own = suite.checkout / "results" / "own" / "table3"
    assert suite.reports == [
        (own / "local", records),
        (suite.checkout.parent / "elsewhere" / "mine" / "table3" / "local", records),
        (own / "smoke", []),
    ]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_committed_report_stands_alone(suite, by_name):
    commit_records(suite)
    results = suite.checkout / "results"
    run("table3", *(["--results", str(results)] if by_name else ["--commit-results"]))
    assert suite.reports == [(results / "table3" / "local", None)]


def test_a_report_is_written_again_if_records_or_committed_figures_changed(suite):
    path, _ = commit_records(suite)
    run("table3")
    run("table3")
    assert len(suite.reports) == 1
    later = path.stat().st_mtime + 60
    os.utime(path, (later, later))
    run("table3")
    assert len(suite.reports) == 2
    suite.store.path(specs()[0]).unlink()
    run("table3")
    assert len(suite.reports) == 3


def test_relative_folders_lie_where_the_user_stands(suite, tmp_path, monkeypatch):
    run("table3", "--results", "mine", "--store", "my runs")
    assert (tmp_path / "elsewhere/mine/table3/local/table.md").is_file()
    assert list((tmp_path / "elsewhere/my runs/table3/local").glob("*/record.json"))
    monkeypatch.setenv("METRICOPT_STORE", "other")
    run("table3", "--results", "mine")
    assert list((tmp_path / "elsewhere/other/table3/local").glob("*/record.json"))
    assert os.environ["METRICOPT_STORE"] == str(tmp_path / "elsewhere" / "other")


def test_workers_are_the_number_asked_for_or_that_of_the_runs(suite):
    run("table3", "--workers", "3")
    run("table3", "--workers", "99", "--fresh")
    assert suite.workers == [3, 4]


def test_fresh_repeats_all_runs_and_networks_stay(suite):
    run("table3")
    run("table3", "--fresh")
    assert [len(ran) for ran in suite.ran] == [4, 4]
    assert suite.prepared[1] == specs()
    assert {suite.calls(spec) for spec in specs()} == {2}
    assert suite.store.stale(specs()) == []


def all_records_are_old(suite):
    """Whether each record is that of the first call, and readable."""
    return [suite.calls(spec) for spec in specs()] == [1] * 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--workers", "0"], "--workers must be a whole number of at least 1, got '0'"),
        ([], r"the disk of .* has 0\.2 GB free, expected at least 1 GB"),
        (["--results", "../file"], "the results folder .* must be a writable folder"),
    ],
    ids=["workers", "disk", "results"],
)
def test_fresh_that_cannot_be_done_changes_nothing(
    suite, capsys, monkeypatch, arguments, text
):
    run("table3")
    capsys.readouterr()
    suite.checkout.with_name("file").touch()
    if not arguments:
        monkeypatch.setattr(paths, "free_gigabytes", lambda folder: 0.25)
    assert main(["table3", "--fresh", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(f"error: {text}", line)
    assert all_records_are_old(suite)
    assert suite.store.stale(specs()) == []


def test_an_interrupted_fresh_keeps_all_records_and_goes_on(suite, capsys):
    run("table3")
    suite.stop_after = 1
    assert main(["table3", "--fresh"]) == 130
    done, *left = specs()
    assert [suite.calls(spec) for spec in specs()] == [2, 1, 1, 1]
    assert suite.store.stale(specs()) == left
    suite.stop_after = None
    capsys.readouterr()
    run("table3")
    assert capsys.readouterr().err == (
        "an earlier --fresh was interrupted before it repeated 3 of 4 runs; their old "
        "records are used, and --fresh goes on\n"
    )
    assert suite.ran[-1] == []
    run("table3", "--fresh")
    assert capsys.readouterr().err == (
        "an earlier --fresh was interrupted: 3 of 4 runs are still to be repeated\n"
    )
    assert suite.ran[-1] == left
    assert suite.calls(done) == 2
    run("table3", "--fresh")
    assert suite.ran[-1] == specs()


def test_an_interrupted_fresh_of_all_goes_on_where_it_was(suite):
    run("all")
    suite.stop_after = 0
    assert main(["all", "--fresh"]) == 130
    suite.stop_after = None
    run("quick", "--fresh")
    run("all", "--fresh")
    assert [len(ran) for ran in suite.ran] == [4, 4, 0, 4, 0, 4]


def test_what_takes_days_is_run_by_its_name_alone(suite, capsys):
    find_experiment("table3").takes_days = True
    run("all")
    assert {spec.experiment for spec in suite.ran[-1]} == {"quick"}
    assert len(suite.ran) == 1
    assert capsys.readouterr().out.startswith("table3 takes days, so it is left out; ")
    run("table3")
    assert {spec.experiment for spec in suite.ran[-1]} == {"table3"}
    run("all", "--tier", "smoke")
    assert len(suite.ran) == 4
