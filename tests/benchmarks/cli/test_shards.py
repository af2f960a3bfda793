"""The options `--shard` and `--merge`: parts of a table, and the table made of them."""

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import EXPERIMENTS, find_experiment
from tests.benchmarks.cli.toy_suite import install, run
from tests.benchmarks.execution.kills import Sandbox, differences
from tests.benchmarks.report.small_table import small_experiment
from tests.benchmarks.runs.record_cases import make_record


@pytest.fixture
def suite(tmp_path, monkeypatch):
    return install(monkeypatch, tmp_path)


def specs():
    return find_experiment("table3").specs("local", None, True)


@pytest.mark.usefixtures("shared_cache")
def test_merged_shards_give_the_table_of_one_process(tmp_path, monkeypatch, capsys):
    small = small_experiment("table3")
    monkeypatch.setitem(EXPERIMENTS._units, "table3", small)

    def table(site, *arguments):
        places = ("--results", str(site.results), "--store", str(site.store))
        run("table3", "--tier", "smoke", "--workers", "1", *arguments, *places)

    whole, merged = Sandbox(tmp_path / "whole"), Sandbox(tmp_path / "merged")
    table(whole, "--replicates", "1")
    parts = [Sandbox(tmp_path / str(number)) for number in (1, 2)]
    for number, part in enumerate(parts, start=1):
        table(part, "--replicates", "1", "--shard", f"{number}/2")
    counts = [len(list(part.store.rglob("record.json"))) for part in parts]
    assert min(counts) > 0 and sum(counts) == 4
    # A part of a table is no table.
    assert not list(parts[0].results.rglob("table.md"))
    stores = [str(part.store) for part in parts]
    places = ("--results", str(merged.results), "--store", str(merged.store))
    asked = ("table3", "--tier", "smoke", "--replicates", "1")
    run("report", *asked, "--merge", *stores, *places)
    assert differences(whole, merged) == []
    assert len(list(merged.results.rglob("table.*"))) == 3
    printed = capsys.readouterr().out
    assert f"shard 2/2 of table3 (smoke): {counts[1]} of {counts[1]} runs" in printed
    assert f"{counts[0]} records taken over from {stores[0]}" in printed


def test_a_shard_runs_its_own_part_and_writes_no_report(suite, capsys):
    for number in (1, 2, 3):
        run("table3", "--shard", f"{number}/3", "--fresh")
    assert sorted(s.cell for part in suite.ran for s in part) == sorted(
        spec.cell for spec in specs()
    )
    assert suite.reports == []
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        f"records are in {suite.store.root}; `report table3 --tier local --merge "
        "DIR ...` makes the report of all shards"
    )
    run("report", "table3")
    assert len(suite.reports) == 1


def test_more_shards_than_runs_leave_some_without_any(suite):
    for number in range(1, 10):
        run("table3", "--shard", f"{number}/9")
    assert sorted(map(len, suite.ran)) == [0] * 5 + [1] * 4


@pytest.mark.parametrize(
    "text", ["0/2", "3/2", "1", "1/", "/2", "a/b", "1/2/3", "-1/2"]
)
def test_a_wrong_shard_is_answered_with_an_example(suite, text, capsys):
    assert main(["table3", f"--shard={text}"]) == 2
    assert capsys.readouterr().err == (
        "error: --shard must be a part and the number of parts, such as 2/8, got "
        f"{text!r}\n"
    )
    assert suite.ran == []


def test_a_report_refuses_stores_that_disagree(suite, tmp_path, capsys):
    others = [RunStore(tmp_path / name) for name in ("a", "b")]
    for value, other in enumerate(others):
        other.put(make_record(specs()[0], [float(value)]))
    folders = [str(other.root) for other in others]
    assert main(["report", "table3", "--merge", *folders]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    first, second = (re.escape(str(other.path(specs()[0]))) for other in others)
    assert re.fullmatch(f"error: {first} and {second} hold different values .*", line)
    assert suite.reports == [] and suite.store.get(specs()[0]) is None


def test_records_of_runs_that_are_not_planned_here_are_mentioned(suite, capsys):
    other = RunStore(Path("other"))
    wanted = find_experiment("table3").specs("local", 3, True)
    for spec in wanted:
        other.put(make_record(spec))
    run("report", "table3", "--merge", "other")
    told = capsys.readouterr()
    assert told.out.startswith(f"4 records taken over from {Path('other').absolute()}")
    assert told.err.startswith("2 records in ") and "not planned here" in told.err
    assert len(suite.reports) == 1
