"""Finding, parsing, checking and caching of data sets."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.data.files.download import read_archive
from benchmarks.data.files.variants import (
    DataFile,
    array_digest,
    cached_digest,
    fingerprint,
)
from benchmarks.data.registry import find_source, variant_shape
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.data.toy_data import INPUTS, TARGETS, TEXT, Toy, downloadable

ROOT = data_root()


def needs(name, variant):
    """Skip a test where there is no copy of a variant."""
    states = {each.variant.name: each.state for each in find_source(name).status(ROOT)}
    missing = states[variant] == "missing"
    return pytest.mark.skipif(missing, reason=f"no copy of {name} ({variant})")


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def toy(tmp_path):
    Toy.parsed = 0
    (tmp_path / "toy").mkdir()
    return Toy()


def test_digest_depends_on_content_type_and_shape_only():
    digest = array_digest(INPUTS, TARGETS)
    assert digest == array_digest(np.asfortranarray(INPUTS), TARGETS.copy())
    assert digest == array_digest(INPUTS.astype(">f4"), TARGETS.astype(">i8"))
    assert digest != array_digest(INPUTS.T, TARGETS)
    assert digest != array_digest(INPUTS.astype(np.float64), TARGETS)
    assert digest != array_digest(INPUTS + np.float32(1e-6), TARGETS)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_load_reads_plain_and_packed_files(toy, tmp_path, pack):
    suffix = "" if pack is bytes else ".gz"
    (tmp_path / "toy" / f"toy.data{suffix}").write_bytes(pack(TEXT))
    data = toy.load(tmp_path)
    assert torch.equal(data.inputs, torch.tensor([[1.0], [2.0], [3.0]]))
    assert data.targets.tolist() == [0, 1, 1]
    assert data.digest == array_digest(INPUTS, TARGETS)
    assert (data.label, data.note) == ("toy", "")


def test_only_variant_present_is_chosen(toy, tmp_path):
    (tmp_path / "toy" / "small.data").write_bytes(TEXT[:8])
    data = toy.load(tmp_path)
    assert (data.variant, data.label) == ("small", "toy-small")
    assert data.note == "two rows of three"
    (tmp_path / "toy" / "toy.data").write_bytes(TEXT)
    assert toy.load(tmp_path).variant == "full"
    assert toy.load(tmp_path, variant="small").variant == "small"


def test_variant_without_download(toy, tmp_path):
    text = r"toy \(small\) needs small.data in .*toy; copy the right file there, as"
    with pytest.raises(DataError, match=text):
        toy.load(tmp_path, variant="small")


def test_second_load_does_not_parse(toy, tmp_path):
    path = tmp_path / "toy" / "toy.data"
    path.write_bytes(TEXT)
    first, second = toy.load(tmp_path), toy.load(tmp_path)
    assert Toy.parsed == 1
    assert torch.equal(first.inputs, second.inputs)
    assert first.digest == second.digest
    toy.verify(tmp_path)
    assert Toy.parsed == 2


def test_changed_file_is_parsed_again(toy, tmp_path):
    path = tmp_path / "toy" / "toy.data"
    path.write_bytes(TEXT)
    toy.load(tmp_path)
    path.write_bytes(TEXT.replace(b"3 1", b"4 1"))
    with pytest.raises(
        DataError, match=r"toy.data is not toy \(full\): expected the d"
    ):
        toy.load(tmp_path)


@pytest.mark.parametrize("end", [b"", b"\x00\x00\x80@"], ids=["torn", "altered"])
def test_damaged_cache_is_made_again(toy, tmp_path, end):
    (tmp_path / "toy" / "toy.data").write_bytes(TEXT)
    toy.load(tmp_path)
    cache = tmp_path / "cache" / "parsed" / "toy-full.safetensors"
    cache.write_bytes(cache.read_bytes()[:-4] + end)
    assert toy.load(tmp_path).targets.tolist() == [0, 1, 1]
    assert Toy.parsed == 2


def test_cache_that_cannot_be_written_is_done_without(toy, tmp_path, monkeypatch):
    # A file where the folder of parsed data would be: not even root can write below.
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "parsed").write_text("")
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "toy" / "toy.data").write_bytes(TEXT)
    assert toy.load(tmp_path).targets.tolist() == [0, 1, 1]


def test_partial_digest_covers_the_first_rows(toy, tmp_path):
    path = tmp_path / "toy" / "small.data"
    path.write_bytes(b"1 0\n9 1\n")
    data = toy.load(tmp_path)
    assert data.digest == array_digest(data.inputs.numpy(), data.targets.numpy())
    path.write_bytes(b"5 0\n9 1\n")
    with pytest.raises(DataError, match="expected the digest"):
        toy.load(tmp_path)


def test_load_downloads_unless_offline(toy, tmp_path):
    source = tmp_path / "official.gz"
    source.write_bytes(gzip.compress(TEXT))
    toy = downloadable(toy, source.as_uri())
    with pytest.raises(DataError, match=r"run `\./reproduce.sh data fetch toy`"):
        toy.load(tmp_path, offline=True)
    assert toy.load(tmp_path).targets.tolist() == [0, 1, 1]
    assert (tmp_path / "toy" / "toy.data.gz").is_file()
    assert toy.fetch(tmp_path) == []


@pytest.fixture
def halves(toy):
    """A toy with a download, whose rows may also lie in two files."""

    class Halves(Toy):
        def _parse(self, contents):
            return super()._parse([b"".join(contents)])

    source = downloadable(Halves(), "https://nowhere.invalid/")
    form = (DataFile("first.data"), DataFile("second.data"))
    source.specs = (replace(source.specs[0], alternatives=(form,)), source.specs[1])
    return source


def test_another_form_needs_no_download(halves, tmp_path):
    (tmp_path / "toy" / "first.data").write_bytes(TEXT[:4])
    (tmp_path / "toy" / "second.data.gz").write_bytes(gzip.compress(TEXT[4:]))
    assert halves.fetch(tmp_path) == []
    assert halves.load(tmp_path).targets.tolist() == [0, 1, 1]
    (status, _) = halves.status(tmp_path)
    where = str(tmp_path / "toy" / "first.data")
    assert (status.state, status.where, status.digest) == ("present", where, "ok")


def test_official_form_comes_first(halves, tmp_path):
    for name, text in [("first", b"9 1\n"), ("second", TEXT[4:]), ("toy", TEXT)]:
        (tmp_path / "toy" / f"{name}.data").write_bytes(text)
    assert halves.load(tmp_path).inputs[0].item() == 1.0
    (tmp_path / "toy" / "toy.data").unlink()
    text = r"first.data \+ .*second.data is not toy .*: expected .* per class"
    with pytest.raises(DataError, match=text):
        halves.load(tmp_path)


def test_form_begun_is_the_one_that_lacks_files(halves, tmp_path):
    with pytest.raises(DataError, match=r"toy \(full\) needs toy.data in "):
        halves.load(tmp_path, offline=True)
    (tmp_path / "toy" / "first.data").write_bytes(TEXT[:4])
    assert halves.status(tmp_path)[0].state == "missing"
    with pytest.raises(DataError, match=r"needs second.data in .*; run `\./repro"):
        halves.load(tmp_path, offline=True)


def test_status_tells_state_without_parsing(toy, tmp_path):
    assert [s.state for s in toy.status(tmp_path)] == ["missing", "missing"]
    (tmp_path / "toy" / "toy.data").write_bytes(TEXT)
    full, small = toy.status(tmp_path)
    assert (full.state, full.digest) == ("present", "not checked")
    assert full.where == str(tmp_path / "toy" / "toy.data")
    assert (small.state, small.digest) == ("missing", "-")
    assert Toy.parsed == 0
    toy.load(tmp_path)
    assert toy.status(tmp_path)[0].digest == "ok"


def test_fingerprint_follows_files_and_facts(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    mark = fingerprint([path], "a")
    assert mark == fingerprint([path], "a")
    assert mark != fingerprint([path], "b")
    path.write_bytes(b"three")
    assert mark != fingerprint([path], "a")
    assert cached_digest(tmp_path / "none", mark) is None


def test_embedded_sets_equal_scikit_learn():
    inputs, targets = load_breast_cancer(return_X_y=True)
    data = find_source("breast_cancer").load()
    np.testing.assert_array_equal(data.inputs, inputs.astype(np.float32))
    assert data.targets.tolist() == targets.tolist()
    digits, data = load_digits(), find_source("digits").load()
    np.testing.assert_array_equal(data.inputs[:, 0], digits.images / 16)
    assert data.targets.tolist() == digits.target.tolist()


@needs("a9a", "full")
def test_a9a_rows_are_those_of_the_text():
    data = find_source("a9a").load(ROOT, offline=True)
    path = Path(find_source("a9a").status(ROOT)[0].where)
    text = read_archive(path, name="a9a").decode()
    lines = [line.split() for line in text.splitlines()[:50]]
    for line, row, target in zip(lines, data.inputs, data.targets, strict=False):
        ones = {int(item.split(":")[0]) - 1 for item in line[1:]}
        assert set(row.nonzero().flatten().tolist()) == ones
        assert target.item() == int(line[0] == "+1")
    assert data.targets[:32561].sum() == 7841
    assert data.targets[32561:].sum() == 3846
    assert data.inputs.unique().tolist() == [0.0, 1.0]


@needs("covtype", "sample80000")
def test_covtype_sample_is_in_native_units():
    data = find_source("covtype").load(ROOT, variant="sample80000", offline=True)
    assert data.label == "covtype-sample80000"
    assert data.inputs[0, :11].tolist() == [
        3218, 343, 13, 42, 8, 3218, 194, 220, 165, 4121, 1,
    ]  # fmt: skip
    assert (data.inputs[:, 10:14].sum(1) == 1).all()
    assert (data.inputs[:, 14:].sum(1) == 1).all()


def test_a9a_refuses_a_cut_file(tmp_path):
    (tmp_path / "a9a").mkdir()
    (tmp_path / "a9a" / "a9a").write_text("+1 1:1 123:1\n-1 2:1\n")
    (tmp_path / "a9a" / "a9a.t").write_text("-1 2:1\n")
    with pytest.raises(DataError, match=r"got \(3, 123\); delete it and run"):
        find_source("a9a").load(tmp_path, offline=True)


def test_variants_tell_their_shape_without_being_loaded():
    assert variant_shape("digits", "full") == (1_797, 1, 8, 8)
    assert variant_shape("covtype", "full") == (581_012, 54)
    with pytest.raises(ConfigError, match="digits has no variant 'half'; known: full"):
        variant_shape("digits", "half")
