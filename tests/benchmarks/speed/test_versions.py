"""Two versions of the library do the same work; which is faster, no test may ask."""

import subprocess

import pytest

from benchmarks.runs.paths import ROOT
from benchmarks.speed import versions
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


def test_the_best_turn_of_each_version_counts(monkeypatch, capsys):
    def measured(library):
        turns.append(library)
        return {"work": 2.0 + len(turns) if library == ROOT else 10.0 + len(turns)}

    turns = []
    monkeypatch.setattr(versions, "seconds_of", measured)
    assert versions.main(["HEAD"]) == 0
    assert len(turns) == 2 * versions.REPEATS and turns[1::2] == [ROOT] * 3
    printed = capsys.readouterr().out
    assert "work, HEAD" in printed and "11.00 s" in printed
    assert "4.00 s" in printed and "0.36" in printed


def test_usage(capsys):
    assert versions.main([]) == 2
    assert "REV" in capsys.readouterr().err
