"""Disks that are full or read-only: said before any work, and measured work stays."""

import errno
import os
import shutil
import tempfile

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.verbs import pretrain
from benchmarks.data.files import download as downloads
from benchmarks.runs import paths
from benchmarks.runs.paths import ensure_writable
from benchmarks.tables.registry import find_experiment
from metricopt import files
from metricopt.errors import ConfigError, DataError
from metricopt.files import write_atomically
from tests.benchmarks.cli.toy_suite import install, run

REFUSALS = {
    "full": errno.ENOSPC,
    "quota": errno.EDQUOT,
    "read-only": errno.EROFS,
    "forbidden": errno.EACCES,
    "broken": errno.EIO,
}


def refusal(code, path=None):
    return OSError(code, os.strerror(code), *([] if path is None else [str(path)]))


@pytest.fixture
def suite(tmp_path, monkeypatch):
    suite = install(monkeypatch, tmp_path)
    monkeypatch.setattr(pretrain, "RELEASED", suite.checkout / "results" / "weights")
    return suite


def specs():
    return find_experiment("table3").specs("local", None, True)


def sentence(capsys, *arguments):
    capsys.readouterr()
    assert main(arguments) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert shown.out == ""
    return line.removeprefix("error: ")


def places(suite):
    own = suite.checkout / "results" / "own"
    return {
        "the run store": suite.store.root,
        "the cache": suite.checkout.with_name("cache"),
        "the results folder": own / "table3" / "local",
        "the folder of released networks": suite.checkout / "results" / "weights",
    }


WRITTEN = [
    (["table3"], "the run store"),
    (["table3"], "the cache"),
    (["table3"], "the results folder"),
    (["table3", "--fresh"], "the run store"),
    (["all"], "the results folder"),
    (["report", "table3"], "the results folder"),
    (["pretrain", "table3"], "the cache"),
    (["pretrain", "table3", "--release"], "the folder of released networks"),
]
"""Every verb that writes, and what it writes to."""


@pytest.mark.parametrize(("arguments", "place"), WRITTEN)
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_folder_that_takes_no_bytes_is_named_first(
    suite, capsys, monkeypatch, arguments, place, kind
):
    folder = places(suite)[place]
    real = tempfile.TemporaryFile

    class Full:
        """A file that can be made, and takes nothing, as on a full disk."""

        def __init__(self, dir):
            self.file, self.full = real(dir=dir), dir == folder

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, content):
            if self.full:
                raise refusal(REFUSALS[kind])

        def flush(self):
            """Nothing was written."""

        def fileno(self):
            return self.file.fileno()

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    reason = os.strerror(REFUSALS[kind])
    assert sentence(capsys, *arguments) == (
        f"{place} {folder} must be a writable folder: {reason}"
    )
    assert suite.prepared == suite.ran == []
    assert suite.store.stale(specs()) == []


@pytest.mark.parametrize(("arguments", "place"), WRITTEN)
def test_too_little_space_or_a_file_above_a_folder_is_named_first(
    suite, capsys, monkeypatch, arguments, place
):
    folder = places(suite)[place]
    with monkeypatch.context() as patch:
        free = {folder: 0.25}
        patch.setattr(paths, "free_gigabytes", lambda path: free.get(path, 5.0))
        assert sentence(capsys, *arguments) == (
            f"the disk of {folder} has 0.2 GB free, expected at least 1 GB"
        )
    above = folder if place in ("the cache", "the run store") else folder.parent
    if above.is_dir():
        shutil.rmtree(above)
    above.parent.mkdir(parents=True, exist_ok=True)
    above.write_text("")
    assert str(above) in sentence(capsys, *arguments)
    assert suite.prepared == suite.ran == []


@pytest.mark.parametrize("folder", ["/proc/metricopt", "/dev/full", "/dev/null/below"])
def test_what_is_no_disk_is_refused(folder):
    with pytest.raises(ConfigError, match=f" {folder} (must be|has 0.0 GB free)"):
        ensure_writable("the cache", paths.Path(folder))


def test_a_probe_leaves_nothing(tmp_path):
    ensure_writable("the cache", tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_disk_that_fails_during_the_runs_is_one_sentence(
    suite, capsys, monkeypatch, kind
):
    code, written = REFUSALS[kind], []
    real = os.fsync

    def full(handle):
        written.append(handle)
        if len(written) == 6:  # three probes and two records
            raise refusal(code)
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        text = sentence(capsys, "table3")
    done, failed = specs()[:2], specs()[2]
    assert str(suite.store.path(failed)) in text
    assert os.strerror(code) in text
    assert text.endswith("finished runs are kept, the same command goes on")
    assert [suite.calls(spec) for spec in done] == [1, 1]
    assert suite.store.get(failed) is None
    # No half-written file is left.
    assert list(suite.store.root.rglob(".*")) == []
    run("table3")
    assert len(suite.ran[-1]) == 2


def test_a_write_that_fails_names_the_file_and_not_the_temporary_one(
    tmp_path, monkeypatch
):
    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    for name in ("fsync", "replace", "chmod"):
        with monkeypatch.context() as patch:
            patch.setattr(files.os, name, lambda *_: fail(refusal(errno.ENOSPC)))
            with pytest.raises(OSError, match=f"device: '{path}'$"):
                write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match=f"exists: '{path}'$"):
        write_atomically(path / "below", b"new")


def fail(error):
    raise error


def test_a_download_has_no_room_or_is_not_tried_again(tmp_path, monkeypatch):
    source, tries = tmp_path / "source", []
    source.write_bytes(bytes(2_000))
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "free_gigabytes", lambda folder: 1e-6)
        with pytest.raises(DataError, match=r"GB free, the file needs 0\.0 GB"):
            downloads.download([source.as_uri()], tmp_path / "a" / "b", progress=False)
    assert not (tmp_path / "a" / "b").exists()

    def full(*arguments):
        tries.append(arguments)
        raise refusal(errno.ENOSPC)

    monkeypatch.setattr(downloads._Job, "_copy", full)
    with pytest.raises(DataError, match="No space left on device"):
        downloads.download([source.as_uri()], tmp_path / "file", progress=False)
    assert len(tries) == 1
