"""Whatever is altered in a small project, `verify` names it."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.cli import pages, rebuild
from benchmarks.cli.manifest import manifest_problems
from benchmarks.cli.verbs import experiments, verify
from benchmarks.problems.pretrained import weights as released
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.report.page import write_report
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import digest_of
from benchmarks.runs.store import RunStore, read_jsonl
from benchmarks.tables.registry import EXPERIMENTS
from tests.benchmarks.report.report_cases import ARMS, LAYOUT

README = """# Project

The error falls to <!-- value: table3 balanced a9a/mcr shift -->?<!-- end -->
from .2103, with 3,612 evaluations. See the [docs](docs/more.md).
"""
MORE = "# More\n\nA loss of -.0021 in 18 halves.\n"
REPORT = "results/table3/local"
WEIGHTS = "results/weights/toy"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a report, a released network, pages, and a run store."""
    unit = SimpleNamespace(
        name="table3", default_tier="local", layout=lambda tier: LAYOUT
    )
    monkeypatch.setattr(EXPERIMENTS, "_units", {"table3": unit})
    monkeypatch.setattr(EXPERIMENTS, "_filled", True)
    for module in (experiments, verify, rebuild):
        monkeypatch.setattr(module, "COMMITTED_RESULTS", tmp_path / "results")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(released, "RELEASED", tmp_path / "results" / "weights")
    monkeypatch.setenv("METRICOPT_STORE", str(tmp_path / "store"))
    write_report(LAYOUT, ARMS, tmp_path / REPORT)
    tensors, recipe = {"weight": torch.arange(4.0)}, {"epochs": 3}
    facts = {"weights": weights_digest(tensors), "seconds": 1.5}
    released.release("toy", digest_of(recipe), recipe, Artifact(tensors, facts))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "more.md").write_text(MORE)
    (tmp_path / "README.md").write_text(README)
    RunStore(tmp_path / "store").put(ARMS[0])
    assert pages.main() == 0
    return tmp_path


def problems(capsys, *arguments):
    """Return what `verify` prints, without its last line."""
    code = main(["verify", *arguments])
    captured = capsys.readouterr()
    progress = re.compile(
        r"\w+, tier local: tables and \d+ figures|  checked in \d+ s, .*"
    )
    assert all(map(progress.fullmatch, captured.err.splitlines()))
    *lines, last = captured.out.splitlines()
    assert last == f"1 reports rebuilt from their records: {len(lines)} problems"
    assert code == (1 if lines else 0)
    return lines


def alter(path, before, after):
    text = path.read_bytes()
    assert before in text and before != after
    path.write_bytes(text.replace(before, after, 1))


def test_every_altered_file_is_named_and_rebuilding_brings_it_back(project, capsys):
    assert problems(capsys) == []
    intact = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    store = RunStore(project / "store").path(ARMS[0].spec)
    page = project / REPORT / "table.md"
    alter(page, b".1550", b".1540")
    alter(project / REPORT / "table.csv", b"0.155", b"0.154")
    alter(project / REPORT / "table.tex", b".1550", b".1560")
    alter(project / REPORT / "time.md", b"Mean", b"mean")
    alter(project / f"{WEIGHTS}.safetensors", b"\x80?", b"\x81?")
    alter(project / f"{WEIGHTS}.json", b"1.5", b"1.6")
    alter(project / "README.md", b"3,612", b"3,613")
    alter(project / "docs" / "more.md", b"-.0021", b".0021")
    alter(store, b"0.199", b"0.198")
    found = problems(capsys)
    for path, count in (
        (page, 2),
        (project / REPORT / "table.csv", 2),
        (project / REPORT / "table.tex", 2),
        (project / REPORT / "time.md", 2),
        (project / f"{WEIGHTS}.safetensors", 1),
        (project / f"{WEIGHTS}.json", 1),
        (store, 1),
    ):
        assert len([line for line in found if line.startswith(str(path))]) == count
    assert (
        "README.md has the number 3,613 in its prose where manifest.json lists 3,612; "
        "mend it, or run `python -m benchmarks.cli.pages` if the change is meant"
    ) in found
    assert any(line.startswith("docs/more.md has the number .0021") for line in found)
    assert any(line.startswith("toy.safetensors must hold") for line in found)
    assert len(found) == 14
    # Reports come from their records. Nothing makes up for the rest.
    for path in (store, *project.glob("docs/*"), *project.glob("results/weights/*")):
        path.write_bytes(intact[path])
    (project / "README.md").write_bytes(intact[project / "README.md"])
    assert rebuild.main() == 0
    assert {path: path.read_bytes() for path in intact} == intact


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"0.199", b"0.198"),
        (b"a9a-sample", b"a9a-simple"),
        (b'"seeds":{', b'"seeds":{ '),
    ],
    ids=["value", "data", "form"],
)
def test_an_altered_record_is_named_and_never_becomes_the_listed_one(
    project, capsys, before, after
):
    path = project / REPORT / "records.jsonl"
    alter(path, before, after)
    found = problems(capsys, "table3")
    assert found[0].startswith(f"{path} line ")
    if after.strip() != before:
        assert "the record was altered" in found[0]
        assert pages.main() == 2
        assert "the record was altered" in capsys.readouterr().err


def test_a_report_altered_as_a_whole_differs_from_the_list(project, capsys):
    records = read_jsonl(project / REPORT / "records.jsonl")
    write_report(LAYOUT, records[1:], project / REPORT)
    for arguments in (["table3"], []):
        found = problems(capsys, *arguments)
        for name in ("records.jsonl", "table.md", "table.csv", "time.md"):
            told = f"{project / REPORT / name} is not the file that manifest.json lists"
            assert any(line.startswith(told) for line in found)


def test_another_mark_for_a_number_of_the_prose_is_named(project, capsys):
    alter(project / "README.md", b"a9a/mcr shift", b"a9a/mcr loss-only")
    assert pages_alone(project) == 0
    assert any("README.md has the number <table3/" in line for line in problems(capsys))


def pages_alone(project):
    """Write the numbers of the pages, but not the list, as a forger would."""
    listed = project / "results" / "manifest.json"
    kept = listed.read_bytes()
    code = pages.main()
    listed.write_bytes(kept)
    return code


def test_what_is_no_report_or_no_record_of_its_run_is_named(project, capsys):
    (project / "results" / "table3" / ".DS_Store").write_text("")
    (project / "results" / "table3" / "lokal").mkdir()
    (project / "results" / "weights" / "more.json").symlink_to("nowhere")
    (project / "docs" / "more.md").write_bytes(b"\xff")
    (project / "README.md").unlink()
    store = RunStore(project / "store")
    other = store.path(ARMS[1].spec)
    other.parent.mkdir(parents=True)
    other.write_bytes(store.path(ARMS[0].spec).read_bytes())
    found = problems(capsys)
    for told in (
        "results/table3/.DS_Store is no report of a tier",
        "results/table3/lokal is no report of a tier",
        "results/weights/more.json is not listed in manifest.json",
        "docs/more.md must be a text file in UTF-8",
        "README.md is missing; restore it with git",
        f"{other}: this is the record of another run; delete it",
    ):
        assert any(told in line for line in found), told


def test_results_may_be_a_link(project, capsys):
    (project / "results").rename(project / "elsewhere")
    (project / "results").symlink_to(project / "elsewhere")
    assert problems(capsys) == []
    alter(project / f"{WEIGHTS}.json", b"1.5", b"1.6")
    assert problems(capsys) != []


def test_forged_records_that_make_no_report_are_named(project, capsys):
    path = project / REPORT / "records.jsonl"
    records = read_jsonl(path)
    huge = [
        replace(record, test={name: [1e308] for name in record.test})
        for record in records
    ]
    path.write_text("".join(f"{record.to_json()}\n" for record in huge))
    found = problems(capsys)
    assert found[0].startswith(f"{project / REPORT}: its records make no report"), found


def test_what_is_new_missing_or_a_damaged_list_is_named(project, capsys):
    listed = project / "results" / "manifest.json"
    (project / "docs" / "new.md").write_text("It is 7.")
    (project / f"{WEIGHTS}.json").unlink()
    (project / "results" / "own" / "table3").mkdir(parents=True)
    (project / "results" / "own" / "table3" / "table.md").write_text("mine")
    (project / "results" / "note.txt").write_text("")
    found = problems(capsys)
    assert [line.split(" ", 1)[0] for line in found] == [
        "toy.safetensors",
        str(project / "results" / "note.txt"),
        f"{project / WEIGHTS}.json",
        "docs/new.md",
    ]
    wrong = '{"files": [[1, 2]], "numbers": {}}'
    for text in ("", "[]", '{"files": 3}', "<<<<<<< ours"):
        listed.write_text(text)
        (told,) = manifest_problems(project / "results", {})
        assert f"{listed} is missing or damaged" in told
    listed.write_text(wrong)
    assert f"{listed} is missing or damaged" in problems(capsys)[-1]
