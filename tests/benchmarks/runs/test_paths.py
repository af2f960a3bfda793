"""Where things lie."""

import os

import pytest

from benchmarks.runs.paths import (
    OWN_RESULTS,
    ROOT,
    cache_root,
    data_root,
    free_gigabytes,
    make_variables_absolute,
    store_root,
)
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
        monkeypatch.delenv(name)
        assert function() == tmp_path / "xdg" / "metricopt" / rest
    assert data_root(tmp_path / "mine") == tmp_path / "mine"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "metricopt" / "data"
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"expected a folder, but .*file is a file"):
        data_root(tmp_path / "file")


def test_relative_variables_are_resolved_where_the_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("METRICOPT_DATA", "data/../mine")
    monkeypatch.setenv("METRICOPT_CACHE", "~/cache")
    monkeypatch.delenv("METRICOPT_STORE", raising=False)
    make_variables_absolute()
    monkeypatch.chdir("/")
    assert data_root() == tmp_path / "data" / ".." / "mine"
    assert cache_root() == tmp_path / "home" / "cache"
    assert "METRICOPT_STORE" not in os.environ
    assert store_root() == cache_root() / "runs"


def test_free_space_of_a_folder_that_does_not_exist(tmp_path):
    there = free_gigabytes(tmp_path)
    assert free_gigabytes(tmp_path / "a" / "b") == pytest.approx(there, rel=0.01)
    assert there > 0


def test_the_root_is_the_checkout():
    assert (ROOT / "reproduce.sh").is_file()
    assert OWN_RESULTS.is_relative_to(ROOT)
    assert "results/own/" in (ROOT / ".gitignore").read_text().splitlines()
