"""Listed data sets: lists and their faults, folders and archives, real files."""

import os
import pickle
from dataclasses import replace

import pytest
import torch

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.listed.contract import LISTED, listed
from benchmarks.data.listed.sop import UNPACKED, StanfordOnlineProducts
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.data.listed.miniature import HEADER, write_miniature, zipped

TRAIN, TEST = "Ebay_train.txt", "Ebay_test.txt"


@pytest.fixture
def folder(tmp_path):
    return write_miniature(tmp_path / UNPACKED)


def read(folder):
    return listed(FolderReader(folder), "mini")


def edit(folder, name, change):
    path = folder / name
    path.write_text(change(path.read_text()))


def test_images_of_training_come_first(folder):
    images = read(folder)
    assert (len(images), images.train_rows) == (18 + 12, 18)
    assert images.classes.tolist() == [k for k in range(1, 11) for _ in range(3)]
    assert set(images.supers.tolist()) == {1, 2, 3}
    assert images.read(2).mode == "RGB"
    assert images.read(2).size == (48, 40)


def test_a_folder_and_its_archive_are_the_same_data_set(folder, tmp_path):
    unpacked = read(folder)
    archive = zipped(folder, tmp_path / "a.zip", UNPACKED)
    packed = listed(ZipReader(archive, TRAIN), "mini")
    assert packed.digest == unpacked.digest
    assert packed.read(7).tobytes() == unpacked.read(7).tobytes()
    again = pickle.loads(pickle.dumps(packed.reader))
    assert again.read(packed.paths[3]) == unpacked.reader.read(unpacked.paths[3])


def test_another_image_is_another_data_set(folder):
    before = read(folder)
    path = folder / before.paths[0]
    path.write_bytes(path.read_bytes() + b"more")
    assert read(folder).digest != before.digest


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (TRAIN, lambda t: t.replace("image_id", "id"), f"must begin with '{HEADER}'"),
        (TRAIN, lambda t: "", "must begin with"),
        (TEST, lambda t: HEADER, "must list at least one image, got none"),
        (
            TRAIN,
            lambda t: t.replace("2 1 1 ", "2 one 1 "),
            "line 3 of Ebay_train.txt must be three numbers and a path, got '2 one 1",
        ),
        (
            TEST,
            lambda t: t.replace("19 7 1 ", "18 7 1 "),
            r"1 ids that are listed twice \(18\), expected none",
        ),
        (
            TEST,
            lambda t: t.replace(" 7 1 ", " 6 1 "),
            r"1 test classes that are training classes \(6\)",
        ),
        (
            TEST,
            lambda t: "\n".join(t.splitlines()[:-2]),
            r"1 classes with one image, which can be no query \(10\)",
        ),
    ],
)
def test_a_wrong_list_is_named(folder, name, change, said):
    edit(folder, name, change)
    with pytest.raises(DataError, match=said):
        read(folder)


def test_missing_images_are_named_and_counted(folder):
    lost = read(folder).paths[:5]
    for path in lost:
        (folder / path).unlink()
    said = rf"5 listed images that are missing \({lost[0]}, .*, \.\.\.\)"
    with pytest.raises(DataError, match=said):
        read(folder)


def test_a_missing_list_is_named(folder):
    (folder / TEST).unlink()
    with pytest.raises(DataError, match="mini needs Ebay_test"):
        read(folder)


def test_the_official_data_set_says_what_to_do_where_it_is_missing(tmp_path):
    source = StanfordOnlineProducts()
    said = "run `./reproduce.sh data fetch sop`, or by hand: open https://github.com"
    with pytest.raises(DataError, match=said):
        source.load(tmp_path, offline=True)
    assert [each.state for each in source.status(tmp_path)] == ["missing"]


def test_other_counts_than_the_official_ones_are_refused(tmp_path, monkeypatch):
    write_miniature(tmp_path / "sop" / UNPACKED)
    source = StanfordOnlineProducts()
    assert [each.state for each in source.status(tmp_path)] == ["present"]
    said = "must have 120,053 images of 22,634 classes.*got 30 images of 10 classes"
    with pytest.raises(DataError, match=said):
        source.load(tmp_path, offline=True)
    monkeypatch.setattr(StanfordOnlineProducts, "expected", (18, 30, 6, 10))
    assert len(source.load(tmp_path, offline=True)) == 30
    monkeypatch.setattr(StanfordOnlineProducts, "digest", "0" * 64)
    with pytest.raises(DataError, match="must have the digest 0000"):
        source.load(tmp_path, offline=True)


def test_drawn_shapes_need_no_file_and_are_always_the_same():
    images = LISTED.get("drawn-shapes")().load(offline=True)
    assert len(images) == 216
    again = LISTED.get("drawn-shapes")().load(offline=True)
    assert images.read(5).tobytes() == again.read(5).tobytes()
    assert images.read(5).tobytes() != images.read(6).tobytes()


def test_an_unknown_data_set_is_answered_with_the_known_ones():
    known = ["cars196-sop-format", "drawn-shapes", "lfw", "lfwcrop", "sop"]
    assert list(LISTED) == known
    with pytest.raises(ConfigError, match="drawn-shapes, lfw, lfwcrop, sop"):
        LISTED.get("cars")()


def test_the_subset_of_cars_is_named_so_nobody_takes_it_for_cars196(tmp_path):
    with pytest.raises(DataError, match=r"cars196-sop-format needs .*it has no downl"):
        LISTED.get("cars196-sop-format")().load(tmp_path)


@pytest.mark.skipif("METRICOPT_DATA" not in os.environ, reason="needs the data sets")
def test_the_real_subset_of_cars():
    images = LISTED.get("cars196-sop-format")().load(offline=True)
    counts = torch.bincount(images.classes)[1:]
    assert set(counts.tolist()) == {10}
    assert images.label == "cars196-sop-format"
    assert max(images.read(0).size) <= 96
    shorter = replace(images, train_rows=10)
    assert len(shorter) == 1_600
