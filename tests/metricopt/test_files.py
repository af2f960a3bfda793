"""Files are written completely or not at all, by one function."""

import os
import stat

import pytest

from metricopt.files import write_atomically


def test_write_is_all_or_nothing(tmp_path):
    path = tmp_path / "new" / "deeper" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    with pytest.raises(TypeError):
        write_atomically(path, "text, not bytes")
    assert path.read_bytes() == b"two"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_a_write_that_fails_on_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"one")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("metricopt.files.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_follow_the_user(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file", b"one")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
