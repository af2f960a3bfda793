"""Where things lie, and how files are written."""

import pytest

from benchmarks.paths import cache_root, data_root, store_root, write_atomically
from metricopt.errors import ConfigError


def test_paths_prefer_the_argument_then_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    for name, function, rest in (
        ("METRICOPT_DATA", data_root, "data"),
        ("METRICOPT_CACHE", cache_root, ""),
        ("METRICOPT_STORE", store_root, "runs"),
    ):
        monkeypatch.setenv(name, str(tmp_path / "chosen"))
        assert function() == tmp_path / "chosen"
        assert function(tmp_path / "mine") == tmp_path / "mine"
        monkeypatch.delenv(name)
        assert function() == tmp_path / "xdg" / "metricopt" / rest
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "metricopt" / "data"
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"expected a folder, and .*file is a file"):
        data_root(tmp_path / "file")


def test_write_is_all_or_nothing(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    with pytest.raises(TypeError):
        write_atomically(path, "text, not bytes")
    assert path.read_bytes() == b"two"
    assert [each.name for each in path.parent.iterdir()] == ["file"]
