"""A report goes into an archive, and is checked where nothing else of it is."""

import json
import shutil
import zipfile

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.verbs import bundle, experiments
from benchmarks.report import page
from benchmarks.runs.paths import COMMITTED_RESULTS, ROOT
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import find_experiment

NAME, PLACE = "fig4", "results/fig4/local"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The archive of a committed report."""
    path = tmp_path_factory.mktemp("packed") / "fig4.zip"
    assert main(["bundle", NAME, "--out", str(path)]) == 0
    return path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A machine without committed reports; only the archive has any."""
    monkeypatch.setattr(experiments, "COMMITTED_RESULTS", tmp_path / "none")
    monkeypatch.setattr(page, "draw_all", lambda layout, records: {})
    return tmp_path


def without_figures(path, target, change=lambda files: None):
    """Write an archive anew with changed files; figures take seconds to draw."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files = {k: v for k, v in files.items() if not k.endswith(".png")}
    table = f"{PLACE}/table.md"
    text = files[table].decode()
    before, _, after = text.partition("## Figures")
    files[table] = (before + after[after.index("## Notes") :]).encode()
    manifest = json.loads(files["bundle.json"])
    manifest["files"] = {k: _digest(v) for k, v in files.items() if k != "bundle.json"}
    files["bundle.json"] = json.dumps(manifest).encode()
    change(files)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target


def _digest(content):
    import hashlib

    return hashlib.sha256(content).hexdigest()


def verified(path, capsys):
    code = main(["verify", "--results", str(path)])
    return code, capsys.readouterr().out.splitlines()


def test_a_bundle_is_accepted_as_it_was_written(packed, capsys):
    assert verified(packed, capsys) == (
        0,
        ["1 reports rebuilt from their records: 0 problems"],
    )


def test_it_says_how_its_runs_were_made_and_on_which_data(packed):
    with zipfile.ZipFile(packed) as archive:
        found = json.loads(archive.read("bundle.json"))
        assert (
            archive.read("requirements.lock")
            == (ROOT / "requirements.lock").read_bytes()
        )
    records = read_jsonl(COMMITTED_RESULTS / NAME / "local" / "records.jsonl")
    assert found["commands"] == ["./reproduce.sh fig4 --tier local"]
    assert found["data"] == {records[0].data["variant"]: [records[0].data["digest"]]}
    assert records[0].environment in found["environments"]


def test_the_same_report_gives_the_same_archive(packed, tmp_path):
    assert main(["bundle", NAME, "--out", str(tmp_path / "again.zip")]) == 0
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_without_a_place_it_lies_where_git_ignores_it(packed, tmp_path, monkeypatch):
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    assert main(["bundle", NAME]) == 0
    assert (tmp_path / "build" / "fig4.zip").read_bytes() == packed.read_bytes()
    assert "build/" in (ROOT / ".gitignore").read_text().splitlines()


def test_its_check_tells_how_far_it_is(packed, elsewhere, capsys):
    path = without_figures(packed, elsewhere / "again.zip")
    assert main(["verify", "--results", str(path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("again.zip: unpacking it")
    assert said[1] == "fig4, tier local: tables and 0 figures"
    assert said[2].startswith("  checked in ") and said[2].endswith(" s, 0 problems")


def test_folders_in_an_archive_are_passed_over(packed, elsewhere, capsys):
    def change(files):
        files["results/"] = b""

    path = without_figures(packed, elsewhere / "again.zip", change)
    assert verified(path, capsys)[0] == 0


def test_a_changed_number_is_found(packed, elsewhere, capsys):
    def change(files):
        table = f"{PLACE}/table.csv"
        files[table] = files[table].replace(b"0.82", b"0.92", 1)

    path = without_figures(packed, elsewhere / "changed.zip", change)
    code, told = verified(path, capsys)
    assert code == 1
    assert told[0] == f"{PLACE}/table.csv is not the file that bundle.json lists"
    assert told[1].startswith(f"{PLACE}/table.csv line 6 column ")
    assert told[2] == "1 reports rebuilt from their records: 2 problems"


def test_a_bundle_whose_facts_were_changed_is_refused(packed, elsewhere, capsys):
    def change(files):
        manifest = json.loads(files["bundle.json"])
        files["bundle.json"] = json.dumps(
            {**manifest, "data": {"mnist": ["0"]}}
        ).encode()

    path = without_figures(packed, elsewhere / "changed.zip", change)
    code, told = verified(path, capsys)
    assert (code, told[0]) == (1, "bundle.json tells other data than the records do")


def test_another_lock_is_mentioned(packed, elsewhere, capsys):
    def change(files):
        files["requirements.lock"] = b"torch==1.0\n"
        manifest = json.loads(files["bundle.json"])
        manifest["files"]["requirements.lock"] = _digest(b"torch==1.0\n")
        files["bundle.json"] = json.dumps(manifest).encode()

    path = without_figures(packed, elsewhere / "old.zip", change)
    code, told = verified(path, capsys)
    assert code == 0
    assert told[0].startswith("the bundle has another requirements.lock")


def test_a_report_of_a_user_brings_what_it_was_written_beside(
    elsewhere, monkeypatch, capsys
):
    monkeypatch.setattr(experiments, "COMMITTED_RESULTS", COMMITTED_RESULTS)
    records = read_jsonl(COMMITTED_RESULTS / NAME / "local" / "records.jsonl")
    folder = elsewhere / "own" / NAME / "local"
    layout = find_experiment(NAME).layout("local")
    page.write_report(layout, records, folder, reference=records)
    path = elsewhere / "own.zip"
    options = ["--results", str(elsewhere / "own"), "--out", str(path)]
    assert main(["bundle", NAME, *options]) == 0
    capsys.readouterr()
    monkeypatch.setattr(experiments, "COMMITTED_RESULTS", elsewhere / "none")
    shutil.rmtree(elsewhere / "own")
    assert verified(path, capsys)[0] == 0


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_bundle_is_said_to_be_none(tmp_path, content, capsys):
    path = tmp_path / "some.zip"
    path.write_bytes(content)
    assert main(["verify", "--results", str(path)]) == 2
    assert "is no bundle of a report" in capsys.readouterr().err


def test_a_file_outside_of_the_folder_is_refused(packed, elsewhere, capsys):
    def change(files):
        files["../outside.txt"] = b"hello"

    path = without_figures(packed, elsewhere / "evil.zip", change)
    assert main(["verify", "--results", str(path)]) == 2
    assert "outside of its folder" in capsys.readouterr().err


def test_without_a_report_there_is_no_bundle(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bundle, "COMMITTED_RESULTS", tmp_path)
    assert main(["bundle", NAME, "--out", str(tmp_path / "none.zip")]) == 2
    assert f"there is no report of {NAME} in {tmp_path}" in capsys.readouterr().err
    assert not (tmp_path / "none.zip").exists()
