"""The verb `cache`."""

import pytest

from benchmarks.__main__ import main
from benchmarks.runs.paths import cache_root, store_root
from benchmarks.runs.store import RunStore
from tests.benchmarks.runs.record_cases import make_record, make_spec


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("METRICOPT_STORE", raising=False)
    parts = ("parsed/a", "pretraining/d", "artifacts/theta/b", "artifacts/theta/c")
    for name in parts:
        path = cache_root() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1_250_000)
    RunStore(store_root()).put(make_record(make_spec()))


def test_the_cache_is_shown_by_kind(capsys):
    assert main(["cache"]) == 0
    places, table, note = capsys.readouterr().out.split("\n\n")
    assert places == f"cache  {cache_root()}\nruns   {store_root()}"
    assert [line.split() for line in table.splitlines()] == [
        ["kind", "files", "MB"],
        ["parsed", "1", "1.2"],
        ["pretraining", "1", "1.2"],
        ["features", "0", "0.0"],
        ["theta", "2", "2.5"],
        ["runs", "1", "0.0"],
    ]
    assert note.startswith("Features beyond 20 GB (METRICOPT_CACHE_GIGABYTES) ")


def test_clear_removes_what_is_named(capsys):
    assert main(["cache", "clear", "theta"]) == 0
    assert capsys.readouterr().out == "removed theta: 2 files, 2.5 MB\n"
    left = [path.name for path in cache_root().rglob("*") if path.is_file()]
    assert sorted(left) == ["a", "d", "record.json"]


def test_clear_without_a_name_spares_the_runs(capsys):
    assert main(["cache", "clear"]) == 0
    assert "runs" not in capsys.readouterr().out
    left = [path.name for path in cache_root().rglob("*") if path.is_file()]
    assert left == ["record.json"]
    assert main(["cache", "clear", "runs"]) == 0
    assert not [path for path in cache_root().rglob("*") if path.is_file()]


def test_a_wrong_kind_removes_nothing(capsys):
    assert main(["cache", "clear", "parsed", "teta"]) == 2
    text = "error: unknown kind 'teta'; did you mean 'theta'? known: parsed, "
    assert capsys.readouterr().err.startswith(text)
    assert (cache_root() / "parsed" / "a").exists()
    assert main(["cache", "show", "theta"]) == 2
    assert "only `cache clear` takes kinds" in capsys.readouterr().err
