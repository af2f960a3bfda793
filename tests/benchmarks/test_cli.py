"""The command line: one sentence per error, exit codes, and what is not done twice."""

import dataclasses
import os

import pytest

from benchmarks import verbs
from benchmarks.__main__ import main
from benchmarks.records import RunStore, read_jsonl, write_jsonl
from tests.benchmarks.small_table import small_experiment

RUN = ("table3", "--tier", "smoke", "--replicates", "1", "--workers", "1")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch, tmp_path_factory):
    """Give every test folders of its own, but one cache of artifacts."""
    cache = tmp_path_factory.getbasetemp() / "cli-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    monkeypatch.setenv("METRICOPT_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(verbs, "find_experiment", small_experiment)


def fails(capsys, *arguments):
    """Return the one sentence a command ends with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in captured.err + captured.out
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("table9",), "invalid choice: 'table9'"),
        ((), "the following arguments are required: VERB"),
        (("table3", "--replicates", "two"), "invalid int value: 'two'"),
        (("data", "steal"), "invalid choice: 'steal'"),
    ],
)
def test_usage_errors(arguments, text, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["plan", "report", "verify"])
def test_unknown_experiment(verb, capsys):
    text = fails(capsys, verb, "table9")
    assert text.startswith("unknown experiment 'table9'; known: ")
    assert "table3" in text


@pytest.mark.parametrize("verb", [("table3",), ("plan", "table3"), ("all",)])
def test_unknown_tier(verb, capsys):
    text = fails(capsys, *verb, "--tier", "huge")
    assert text == "unknown tier 'huge'; known: paper, local, smoke"


@pytest.mark.parametrize("replicates", ["0", "-1"])
def test_replicates_below_one(replicates, capsys):
    text = fails(capsys, "table3", "--tier", "smoke", "--replicates", replicates)
    assert text == f"replicates must be at least 1, got {replicates}"


def test_missing_data_offline(tmp_path, capsys):
    text = fails(capsys, "table3", "--tier", "local", "--offline")
    assert text.startswith("a9a (full) needs ")
    assert str(tmp_path / "data" / "a9a") in text
    assert text.endswith("run `./reproduce.sh data fetch a9a`")
    assert not (tmp_path / "results").exists()


def test_data_root_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").touch()
    text = fails(capsys, *RUN, "--data", str(tmp_path / "file"))
    assert text == f"expected a folder, and {tmp_path / 'file'} is a file"


def test_results_folder_that_is_a_file(tmp_path, capsys, small):
    (tmp_path / "results").touch()
    text = fails(capsys, *RUN)
    assert text.startswith("the results folder results/table3/smoke must be writable:")
    assert not (tmp_path / "store").exists()


def test_store_that_is_a_file(tmp_path, capsys, small):
    (tmp_path / "file").touch()
    text = fails(capsys, *RUN, "--store", str(tmp_path / "file"))
    assert text == f"expected a folder, and {tmp_path / 'file'} is a file"


def test_store_below_a_file(tmp_path, capsys, small):
    (tmp_path / "file").touch()
    text = fails(capsys, *RUN, "--store", str(tmp_path / "file" / "store"))
    assert text == f"expected a folder, and {tmp_path / 'file'} is a file"


def test_store_that_refuses_to_be_written(tmp_path, capsys, small, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    # Root may write everywhere, so that file modes would not do.
    monkeypatch.setattr("benchmarks.records.tempfile.TemporaryFile", refuse)
    store = tmp_path / "store"
    assert fails(capsys, *RUN) == (
        f"the run store {store} must be a writable folder: Permission denied"
    )


@pytest.mark.parametrize("verb", ["report", "verify"])
def test_nothing_was_run(verb, capsys):
    text = fails(capsys, verb, "table3", "--tier", "smoke")
    assert (
        text
        == {
            "report": "no run of table3 (smoke) is finished yet",
            "verify": "there is no report of table3 in results",
        }[verb]
    )


def test_an_interrupt_says_that_nothing_is_lost(monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(verbs, "list_units", interrupted)
    assert main(["list"]) == 130
    assert "finished runs are kept" in capsys.readouterr().err


def test_list_names_everything(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = {kind: names.split(", ") for kind, names in (_pair(line) for line in lines)}
    assert "table3" in found["experiments"]
    assert {"a9a", "covtype", "digits"} <= set(found["data sets"])
    assert {"metricopt", "cma-es", "untouched"} <= set(found["methods (choose phi)"])
    assert "surrogate-loss" in found["network methods (train theta)"]
    assert "cross-entropy" in found["losses"]
    assert {"f1", "mcr", "jaccard", "g-mean"} <= set(found["metrics"])


def _pair(line):
    kind, names = line.split(":", 1)
    return kind, names.strip()


def test_plan_counts_what_is_missing(capsys, small):
    assert main(["plan", "table3", "--tier", "smoke", "--replicates", "2"]) == 0
    header, row = capsys.readouterr().out.splitlines()[:2]
    assert header.split()[:4] == ["experiment", "tier", "runs", "missing"]
    assert row.split()[:4] == ["table3", "smoke", "8", "8"]


def test_plan_needs_no_data(tmp_path, capsys):
    assert main(["plan", "table1", "table3", "--tier", "paper"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["table1", "table3"]
    assert not (tmp_path / "data").exists()


def test_plan_takes_hours_of_the_same_tier_alone(tmp_path, capsys, small):
    """A value function's seconds are part of the total of the run that trained it."""
    counts(capsys)
    path = tmp_path / "results" / "table3" / "smoke" / "records.jsonl"
    slow = [
        dataclasses.replace(record, seconds={"total": 7_200, "value function": 7_000})
        for record in read_jsonl(path)
    ]
    write_jsonl(path, slow)
    command = ("plan", "table3", "--replicates", "2", "--tier", "smoke")
    assert main(command) == 0
    same = capsys.readouterr().out.splitlines()[1].split()[4:]
    path.parent.rename(path.parent.with_name("local"))
    assert main(command) == 0
    other = capsys.readouterr().out.splitlines()[1].split()[4:]
    # Of twice four runs, the first four are done.
    assert same[0] == f"{4 * 2 / min(os.cpu_count() or 1, 16):.2f}"
    assert other[:3] == ["0.00", "+", "4"]


def test_doctor_says_what_is_there(tmp_path, capsys):
    code = main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert code == (0 if lines[-1] == "ready" else 1)
    facts = dict(line.split(maxsplit=1) for line in lines if len(line.split()) > 1)
    assert facts["runs"].startswith(str(tmp_path / "store"))
    assert facts["torch"] and facts["gpytorch"]
    assert any(line.split() == ["digits", "full", "embedded"] for line in lines)
    assert any(line.split() == ["a9a", "full", "missing"] for line in lines)


def counts(capsys, *arguments):
    """Run the small table; return how many runs were made, and of how many."""
    assert main([*RUN, *arguments]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    words = line.removeprefix("table3 (smoke): ").split()
    return int(words[0]), int(words[2])


def test_done_runs_are_not_repeated_and_lost_ones_are(tmp_path, capsys, small):
    assert counts(capsys) == (4, 4)
    report = tmp_path / "results" / "table3" / "smoke"
    before = {path: path.stat().st_mtime_ns for path in report.iterdir()}
    tables = {name: (report / name).read_bytes() for name in ("table.md", "table.csv")}
    assert {"records.jsonl", "table.tex", "time.md"} <= {p.name for p in before}

    assert counts(capsys) == (0, 4)
    assert {path: path.stat().st_mtime_ns for path in report.iterdir()} == before

    specs = small_experiment("table3").specs("smoke", 1, True)
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
    arguments = ["verify", "table3", "--tier", "smoke"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 reports rebuilt from their records: 0 problems"
    ]
    page = report / "table.csv"
    intact = page.read_text()
    page.write_text(intact.replace("0.", "0.1", 1))
    assert main(arguments) == 1
    problem, summary = capsys.readouterr().out.splitlines()
    assert problem.startswith("results/table3/smoke/table.csv line ")
    assert summary.endswith("1 problems")

    assert main(["report", "table3", "--tier", "smoke", "--replicates", "1"]) == 0
    assert page.read_text() == intact
