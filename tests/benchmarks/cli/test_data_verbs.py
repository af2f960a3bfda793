"""The data verbs: their tables and exit codes."""

import gzip

import pytest

from benchmarks.cli.verbs import data as data_verbs
from metricopt.errors import ConfigError
from tests.benchmarks.data.toy_data import TEXT, Toy, covtype_row, downloadable

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def toy(tmp_path):
    Toy.parsed = 0
    (tmp_path / "toy").mkdir()
    return Toy()


def test_status_verb_prints_an_aligned_table(tmp_path, capsys):
    assert data_verbs.status(["digits", "a9a"], root=tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "variant", "rows", "state", "where", "digest"],
        ["digits", "full", "1,797", "embedded", "scikit-learn", "not", "checked"],
        ["a9a", "full", "48,842", "missing", f"{tmp_path / 'a9a'}", "-"],
    ]
    columns = ("state", "embedded", "missing")
    starts = [line.index(word) for line, word in zip(lines, columns, strict=True)]
    assert len(set(starts)) == 1


def test_verify_verb(tmp_path, capsys):
    assert data_verbs.verify(["digits"], root=tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("scikit-learn  ok")
    assert data_verbs.verify(root=tmp_path) == 0
    capsys.readouterr()
    assert data_verbs.verify(["a9a"], root=tmp_path) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "error: a9a is not there; run `./reproduce.sh data fetch a9a`"


def test_verify_verb_names_the_wrong_file(tmp_path, capsys):
    (tmp_path / "covtype").mkdir()
    (tmp_path / "covtype" / "covtype.data").write_text(covtype_row(1))
    assert data_verbs.verify(root=tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("covtype"))
    assert row.endswith("wrong")
    assert lines[-1].startswith("error: ")
    assert "covtype.data is not covtype (full): expected" in lines[-1]


def test_fetch_verb(toy, tmp_path, capsys, monkeypatch):
    (tmp_path / "page").write_text("<html>moved</html>")
    (tmp_path / "official.gz").write_bytes(gzip.compress(TEXT))
    for name, code in (("page", 1), ("official.gz", 0), ("official.gz", 0)):
        source = downloadable(toy, (tmp_path / name).as_uri())
        monkeypatch.setattr(data_verbs, "find_any", lambda _, found=source: found)
        assert data_verbs.fetch(["toy"], root=tmp_path) == code
    lines = capsys.readouterr().out.splitlines()
    states = [line.split()[3] for line in lines if line.startswith("toy ")]
    assert states == ["failed", "fetched", "present"]
    assert lines[-1].endswith("ok")
    assert lines[2].startswith("error: cannot download toy.data.gz; file://")


def test_verbs_refuse_unknown_names(tmp_path):
    for verb in (data_verbs.fetch, data_verbs.verify, data_verbs.status):
        with pytest.raises(ConfigError, match="unknown data set 'mnist'"):
            verb(["mnist"], root=tmp_path)
