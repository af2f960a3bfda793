"""The migration of committed records, and the proof that no value moved."""

import json
import subprocess

import pytest

from benchmarks.runs.migrate import main
from tests.benchmarks.runs.test_upgrade import old_record


def git(folder, *arguments):
    identity = ("-c", "user.name=n", "-c", "user.email=e@x")
    command = ["git", *identity, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def results(tmp_path):
    """A repository with committed records of schema 1."""
    path = tmp_path / "results" / "table3" / "local" / "records.jsonl"
    path.parent.mkdir(parents=True)
    legacy = {"test_legacy": [0.7, 0.8], "step": 0.4}
    records = [old_record(), old_record(metric="jaccard", notes=legacy)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "old")
    return tmp_path / "results"


def run(results, *arguments):
    return main(["--results", str(results), *arguments])


def test_migrated_records_are_the_same(results, capsys):
    assert run(results, "--write") == 0
    assert run(results, "--write") == 0
    assert capsys.readouterr().out.count("wrote ") == 1
    git(results, "commit", "-qam", "migrated")
    assert run(results) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.endswith(": same") for line in lines] == [True, True]
    assert lines[0].startswith(old_record()["spec"]["digest"])
    assert last == "2 records held against those of schema 1: all values are the same"


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"test":{"f1":[0.5,', '"test":{"f1":[0.51,', "trace differs"),
        ('"jaccard-legacy":[0.7', '"jaccard-legacy":[0.71', "notes differs"),
        ('"status":"done"', '"status":"failed"', "status differs"),
        ('"step":0.4', '"step":0.5', "notes differs"),
        ('"meta_tests":2', '"meta_tests":3', "spec differs; new digest differs"),
        ('"queried":{"observe":110', '"queried":{"observe":111', "queried differs"),
        ('"replicate":3', '"replicate":4', "only the old file has it"),
    ],
)
def test_a_value_that_moved_is_named(results, capsys, before, after, problem):
    run(results, "--write")
    path = results / "table3" / "local" / "records.jsonl"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert run(results) == 1
    out = capsys.readouterr().out
    assert problem in out
    assert "differ" in out.splitlines()[-1]


def test_what_cannot_be_compared_is_one_sentence(results, tmp_path, capsys):
    assert run(results) == 2
    assert "is of schema 1; `--write` brings it" in capsys.readouterr().err
    run(results, "--write")
    assert run(results, "--against", "nowhere") == 2
    assert "`git fetch --unshallow` brings them" in capsys.readouterr().err
    git(results, "commit", "-qam", "migrated")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", tmp_path.as_uri(), str(clone))
    assert run(clone / "results") == 2
    error = capsys.readouterr().err
    assert "the git history here has no records of schema 1" in error
    assert run(tmp_path / "none") == 2
    assert "there is no file of records below" in capsys.readouterr().err
