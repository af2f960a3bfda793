"""Data sets of translation: the real files, directions, and what is refused."""

import gzip
import io
import tarfile
import zipfile

import pytest

from benchmarks.data.files import packed as packed_files
from benchmarks.data.files import readers
from benchmarks.data.registry import all_names, find_any
from benchmarks.data.translation.contract import TRANSLATION, Pair, paired
from benchmarks.data.translation.multi30k import Multi30k
from benchmarks.data.translation.ro_sts import RoStsEnRo, RoStsRoEn
from benchmarks.data.translation.wmt16 import WMT16EnRo, WMT16RoEn
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError

LINES = "A cat.\tO pisică.\nTwo dogs.\tDoi câini şi ţap.\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for source in (RoStsEnRo, RoStsRoEn):
        monkeypatch.setattr(source, "expected", (4, 2))
        monkeypatch.setattr(source, "digest", "")
    found = tmp_path / "en_ro"
    found.mkdir()
    (found / "train.tsv").write_text(LINES, encoding="utf-8")
    (found / "dev.tsv").write_text(LINES.replace("\n", "\r\n"), encoding="utf-8")
    (found / "test.tsv.gz").write_bytes(gzip.compress(LINES.encode()))
    return found


def load(source, folder):
    return source().load(folder.parent, offline=True)


def test_both_directions_are_read(folder):
    there, back = load(RoStsEnRo, folder), load(RoStsRoEn, folder)
    # Plain, with other ends of lines, and packed: the same; cedillas become commas.
    assert there.parts["train"] == 2 * there.parts["test"]
    assert there.parts["test"][1] == Pair("Two dogs.", "Doi câini și țap.")
    assert back.parts["test"][0] == Pair("O pisică.", "A cat.")
    assert there.digest != back.digest


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.tsv", b"A cat.\tO pisic\xe3.\nB.\tC.\n", "UTF-8, got the byte 0xe3 in"),
        ("train.tsv", b"A cat.\n", "two sentences with a tab .* got 1 in line 1"),
        ("train.tsv", b"A.\tB.\tC.\n", "got 3 in line 1"),
        ("train.tsv", b"A.\tB.\n \tC.\n", r"1 empty sentences \(line 2\), expected"),
        ("train.tsv", b"A.\tB.\n\n", "got 1 in line 2"),
        ("train.tsv", "A.\tB\ufffd.\n".encode(), "1 sentences with broken characters"),
        ("test.tsv.gz", b"no gzip", "test.tsv.gz cannot be unpacked"),
        ("train.tsv", b"", "train.tsv must have a line, but it is empty"),
        ("test.tsv.gz", gzip.compress(b"", mtime=0), "test.tsv.gz must have a line"),
        (
            "test.tsv.gz",
            gzip.compress(b"\xff\tA\n", mtime=0),
            "test.tsv.gz must be text in UTF-8",
        ),
        (
            "dev.tsv",
            b"A.\tB.\n",
            r"must have \(4, 2\) pairs to train and test, got \(3",
        ),
    ],
)
def test_wrong_files_are_refused(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(RoStsEnRo, folder)


def test_a_packed_file_is_unpacked_as_far_as_it_is_not_too_large(folder, monkeypatch):
    for module in (packed_files, readers):
        monkeypatch.setattr(module, "LARGEST", 1_000)
    content = gzip.compress(b"A.\tB.\n" * 1_000, mtime=0)
    (folder / "test.tsv.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"test\.tsv\.gz, unpacked, has 1,001 bytes"):
        load(RoStsEnRo, folder)


def test_a_missing_file_is_named(folder):
    (folder / "dev.tsv").unlink()
    with pytest.raises(
        DataError, match=r"needs dev\.tsv, or the same with \.gz, in .*en"
    ):
        load(RoStsEnRo, folder)
    with pytest.raises(DataError, match=r"needs train\.en and train\.de and val\.en"):
        load(Multi30k, folder)


def test_unequal_numbers_of_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Multi30k, "digest", "")
    monkeypatch.setattr(Multi30k, "expected", (4, 2))
    (tmp_path / "multi30k").mkdir()
    for name in ("train", "val", "test_2016_flickr"):
        for code, text in (("en", "One\nTwo\n"), ("de", "Eins\nZwei\n")):
            (tmp_path / "multi30k" / f"{name}.{code}").write_text(text)
    found = Multi30k().load(tmp_path, offline=True)
    assert found.parts["test"] == (Pair("One", "Eins"), Pair("Two", "Zwei"))
    (tmp_path / "multi30k" / "val.de").write_text("Eins\n")
    message = (
        r"val\.\* must have .*, got 2 sentences and 1 translations; delete what is"
    )
    with pytest.raises(DataError, match=message):
        Multi30k().load(tmp_path, offline=True)
    with pytest.raises(DataError, match="got 0 sentences"):
        paired("nowhere", [], [])


def packed(path, **files):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


EUROPARL = "training-parallel-ep-v8/europarl-v8.ro-en"
SGM = '<refset><doc>\n<seg id="1">{}</seg>\n<seg id="2">{}</seg>\n</doc></refset>'


TEST = {
    "test/newstest2016-enro-src.en.sgm": SGM.format("A &amp; B", "Two"),
    "test/newstest2016-enro-ref.ro.sgm": SGM.format("A &amp; B", "Doi"),
}


@pytest.fixture
def wmt(tmp_path, monkeypatch):
    for source in (WMT16EnRo, WMT16RoEn):
        monkeypatch.setattr(source, "texts", {EUROPARL: 3, "SETIMES.en-ro": 1})
        monkeypatch.setattr(source, "expected", (4, 2))
    found = tmp_path / "wmt16_en_ro"
    found.mkdir()
    english, romanian = "One.\n\nThree.\n", "Unu.\nDoi.\nTrei.\n"
    packed(
        found / "training-parallel-ep-v8.tgz",
        **{f"{EUROPARL}.en": english, f"{EUROPARL}.ro": romanian},
    )
    with zipfile.ZipFile(found / "en-ro.txt.zip", "w") as archive:
        archive.writestr("SETIMES.en-ro.en", "Four.\n")
        archive.writestr("SETIMES.en-ro.ro", "Patru.\n")
    packed(found / "test.tgz", **TEST)
    return found


def test_the_official_archives_of_wmt_are_read_as_they_are(wmt):
    found = load(WMT16EnRo, wmt)
    # The pair with an empty side is left out.
    assert [p.source for p in found.parts["train"]] == ["One.", "Three.", "Four."]
    back = load(WMT16RoEn, wmt).parts["test"]
    assert back == (Pair("A & B", "A & B"), Pair("Doi", "Two"))


def test_other_archives_of_wmt_are_refused(wmt, monkeypatch):
    with pytest.raises(DataError, match=r"test\.tgz"):  # not the official one
        WMT16EnRo().verify(wmt.parent)
    packed(wmt / "test.tgz", **{**TEST, "test/newstest2016-enro-ref.ro.sgm": "<seg>"})
    with pytest.raises(DataError, match="got 2 sentences and 0 translations"):
        load(WMT16EnRo, wmt)
    monkeypatch.setattr(WMT16EnRo, "texts", {EUROPARL: 4, "SETIMES.en-ro": 1})
    with pytest.raises(DataError, match="must have 4 lines in both languages, got 3"):
        load(WMT16EnRo, wmt)
    (wmt / "test.tgz").write_bytes(b"none")
    with pytest.raises(DataError, match=r"test\.tgz cannot be read"):
        load(WMT16EnRo, wmt)
    (wmt / "training-parallel-ep-v8.tgz").unlink()
    with pytest.raises(DataError, match=r"needs training-parallel-ep-v8\.tgz in"):
        load(WMT16EnRo, wmt)


@pytest.mark.parametrize("name", list(TRANSLATION))
def test_the_pairs_are_those_expected(name):
    source = find_any(name)
    assert name in all_names()
    if source.status()[0].state == "missing":
        pytest.skip(f"no copy of {name} at hand")
    found = source.load(data_root(), offline=True)
    counts = tuple(len(found.parts[part]) for part in ("train", "test"))
    assert counts == source.expected
    if name != "made-sentences":
        train, test = ({p.source for p in found.parts[n]} for n in ("train", "test"))
        assert len(train & test) < 0.03 * len(test)
