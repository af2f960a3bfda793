"""What the cache holds, what is removed from it, and what never is."""

import os

import pytest
import torch

from benchmarks.runs.artifacts import (
    Artifact,
    artifact_path,
    cache_kinds,
    clear,
    get_or_make,
    lacking,
    noted,
    packed,
    size_limit,
    unpack,
)
from benchmarks.runs.paths import store_root
from benchmarks.runs.store import RunStore
from metricopt.errors import ConfigError
from tests.benchmarks.runs.record_cases import make_record, make_spec

KILOBYTE = 1_000
LIMIT = "METRICOPT_CACHE_GIGABYTES"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("METRICOPT_STORE", raising=False)
    monkeypatch.delenv(LIMIT, raising=False)


def keep(kind, key, *, used=None):
    """Make an artifact of a kilobyte and a little, last used at some second."""
    tensors = {"part": torch.zeros(KILOBYTE // 4)}
    get_or_make(kind, key, lambda: Artifact(tensors, {}))
    path = artifact_path(kind, key)
    if used is not None:
        os.utime(path, (used, used))
    return path


def test_an_empty_cache_has_the_usual_kinds():
    assert set(cache_kinds()) == {"parsed", "pretraining", "features", "runs"}
    assert set(cache_kinds().values()) == {(0, 0)}
    with pytest.raises(KeyError, match="nothing"):
        clear(["nothing"])


def test_clear_removes_runs_and_nothing_beside_them(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_STORE", str(tmp_path / "store"))
    store = RunStore(store_root())
    store.put(make_record(make_spec()))
    store.mark_stale([make_spec()])
    mine = tmp_path / "store" / "table3" / "smoke" / "notes.txt"
    mine.write_text("of the user")
    clear(["runs"])
    assert store.get(make_spec()) is None
    assert [path for path in store.root.rglob("*") if path.is_file()] == [mine]
    assert cache_kinds()["runs"] == (0, 0)


def test_features_unused_for_longest_make_room(monkeypatch):
    """With a limit of 2.5 files, the third one takes the place of the oldest."""
    first, second = keep("features", 1, used=100), keep("features", 2, used=200)
    keep("features", 1)
    assert first.stat().st_mtime > 200
    monkeypatch.setenv(LIMIT, str(2.5 * second.stat().st_size / 1e9))
    third = keep("features", 3)
    assert (first.exists(), second.exists(), third.exists()) == (True, False, True)


def test_only_features_are_removed(monkeypatch):
    theta = keep("theta", 1, used=100)
    monkeypatch.setenv(LIMIT, "0")
    features = keep("features", 1)
    other = keep("features", 2)
    assert theta.exists()
    assert not features.exists()
    assert other.exists()
    assert keep("theta", 2).exists()


def test_an_artifact_comes_back_from_a_cache_that_is_read_only(monkeypatch):
    keep("features", 1)

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "utime", refuse)
    found = get_or_make("features", 1, lambda: pytest.fail("it was there"))
    assert found.tensors["part"].shape == (KILOBYTE // 4,)


def altered(content, change):
    """Return bytes after a change of the given name."""
    if change == "one bit of a tensor":
        return content[:-1] + bytes([content[-1] ^ 1])
    if change == "one bit of the facts":
        return content.replace(b"0.25", b"0.24", 1)
    if change == "one bit of the digest":
        start = content.index(b'"digest":"') + 10
        flipped = b"1" if content[start : start + 1] == b"0" else b"0"
        return content[:start] + flipped + content[start + 1 :]
    if change == "without digest":
        return content.replace(b'"digest"', b'"digast"', 1)
    return content[:-1]


@pytest.mark.parametrize(
    "change",
    [
        "one bit of a tensor",
        "one bit of the facts",
        "one bit of the digest",
        "without digest",
        "one byte less",
    ],
)
def test_a_damaged_artifact_is_named_and_made_again(change):
    made = Artifact({"part": torch.ones(3), "none": torch.zeros(0)}, {"loss": 0.25})
    get_or_make("theta", 1, lambda: made)
    found = get_or_make("theta", 1, lambda: pytest.fail("it was there"))
    assert torch.equal(found.tensors["part"], torch.ones(3))
    path = artifact_path("theta", 1)
    intact = path.read_bytes()
    damaged = altered(intact, change)
    assert damaged != intact
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match="is damaged and counts as not made"):
        again = get_or_make("theta", 1, lambda: made)
    assert again.facts == {"loss": 0.25}
    assert get_or_make("theta", 1, lambda: pytest.fail("it was made")) is not None
    assert path.with_suffix(".damaged").read_bytes() == damaged
    clear(["theta"])
    assert not path.parent.exists()


def test_the_limit_is_a_number_of_gigabytes(monkeypatch):
    assert size_limit() == 20e9
    monkeypatch.setenv(LIMIT, "0.5")
    assert size_limit() == 0.5e9
    for text in ("-1", "much", "nan"):
        monkeypatch.setenv(LIMIT, text)
        with pytest.raises(ConfigError, match=f"at least 0, got '{text}'"):
            size_limit()


def test_what_was_made_and_found_is_noted_and_goes_to_another_cache(
    tmp_path, monkeypatch
):
    old = keep("theta", "before")
    with noted() as names:
        made, found = keep("preparation", 1), keep("theta", "before")
        keep("preparation", 1)
    assert names == {f"{path.parent.name}/{path.name}" for path in (made, found)}
    assert found == old
    keep("theta", "after")
    assert len(names) == 2
    files = packed([*names, "features/removed.safetensors"])
    assert files.keys() == names
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "other"))
    assert sorted(lacking(names)) == sorted(names)
    unpack(files)
    assert lacking(names) == []
    there = get_or_make("preparation", 1, lambda: pytest.fail("it is there"))
    assert torch.equal(there.tensors["part"], torch.zeros(KILOBYTE // 4))
