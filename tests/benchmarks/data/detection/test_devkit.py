"""Data sets of detection: real files, archives, and every fault of an annotation."""

import pytest
import torch
from PIL import Image

from benchmarks.data.detection.annotations import read_annotation
from benchmarks.data.detection.contract import in_devkit
from benchmarks.data.detection.voc import VOC07, VOC0712
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.registry import find_any
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError
from tests.benchmarks.data.detection.devkit import (
    CLASSES,
    YEAR,
    tarred,
    write_devkit,
    xml,
    zipped,
)

LISTS = {"train": [(YEAR, "trainval")], "test": [(YEAR, "test")]}


def read(folder):
    return in_devkit(FolderReader(folder), LISTS, CLASSES, "mini")


@pytest.fixture
def folder(tmp_path):
    return write_devkit(tmp_path / "VOCdevkit")


def test_boxes_are_continuous_and_parts_are_places(folder):
    images = read(folder)
    assert images.parts["train"].tolist() == [0, 1, 2]
    assert images.parts["test"].tolist() == [3, 4]
    assert images.truths.shape == (5, 2, 6)
    assert images.truths[0].tolist() == [[0, 0, 10, 20, 1, 0], [4, 4, 40, 30, 2, 1]]
    assert not images.truths[2].any()  # an image without an object
    assert images.pixels(3).shape == (3, 30, 40)
    assert images.pixels(3).dtype == torch.uint8


def test_archives_are_the_same_data_set_as_their_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(VOC07, "expected", (3, 2))
    monkeypatch.setattr(VOC07, "classes", CLASSES)
    packed, unpacked = tmp_path / "packed" / "voc", tmp_path / "unpacked" / "voc"
    packed.mkdir(parents=True)
    unpacked.mkdir(parents=True)
    folder.rename(unpacked / "VOCdevkit")
    for name in ("VOCtrainval_06-Nov-2007.tar", "VOCtest_06-Nov-2007.tar"):
        tarred(unpacked / "VOCdevkit", packed / name)
    assert VOC07().status(packed.parent)[0].state == "present"
    one, other = (
        VOC07().load(each.parent, offline=True) for each in (packed, unpacked)
    )
    assert one.digest == other.digest
    assert torch.equal(one.pixels(4), other.pixels(4))


def test_two_years_train_and_one_is_the_test(tmp_path, monkeypatch):
    monkeypatch.setattr(VOC0712, "expected", (7, 2))
    monkeypatch.setattr(VOC0712, "classes", CLASSES)
    devkit = write_devkit(tmp_path / "voc" / "VOCdevkit")
    write_devkit(devkit, train=4, test=1, year="VOC2012", lists=("trainval", "val"))
    images = VOC0712().load(tmp_path, offline=True)
    assert images.paths[3] == "VOC2012/JPEGImages/000000.jpg"
    assert images.paths[-1] == "VOC2007/JPEGImages/000004.jpg"


def test_missing_archives_are_named(tmp_path):
    with pytest.raises(DataError, match=r"trainval_06-Nov-2007.tar.* data fetch voc07"):
        VOC07().load(tmp_path, offline=True)


def test_another_number_of_images_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(VOC07, "classes", CLASSES)
    write_devkit(tmp_path / "voc" / "VOCdevkit")
    with pytest.raises(DataError, match=r"must have \(5011, 4952\) images .* \(3, 2\)"):
        VOC07().load(tmp_path, offline=True)


def test_a_box_one_pixel_beyond_is_cut_and_difficult_may_lack():
    text = xml(("disc", (0, 1, 41, 30), 0)).replace("<difficult>0</difficult>", "")
    found = read_annotation(text.encode(), CLASSES, "a.xml")
    (box,) = found.objects
    assert found.cut == 1
    assert box == (0.0, 0.0, 40.0, 30.0, 1.0, 0.0)


def gone(part, name):
    def change(folder):
        (folder / YEAR / part / name).unlink()

    return change


def listed(text):
    def change(folder):
        (folder / YEAR / "ImageSets" / "Main" / "trainval.txt").write_text(text)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (gone("Annotations", "000001.xml"), "lacks the annotation .*000001.xml"),
        (gone("JPEGImages", "000001.jpg"), "lacks the image .*000001.jpg"),
        (gone("ImageSets/Main", "test.txt"), "needs VOC2007/ImageSets/Main/test.txt"),
        (listed("\n"), "must list at least one image"),
        (listed("000000\n000000\n"), "lists images twice, .*VOC2007/000000"),
        (listed("000000\n000004\n"), "lists images twice, .*VOC2007/000004"),
        (listed("../../etc/passwd\n"), "lacks the image"),
    ],
)
def test_wrong_devkits_are_refused_before_a_pixel_is_read(folder, change, said):
    change(folder)
    with pytest.raises(DataError, match=said):
        read(folder)


def test_a_wrong_image_is_named_when_it_is_read(folder):
    path = folder / YEAR / "JPEGImages" / "000000.jpg"
    path.write_bytes(path.read_bytes()[:200])
    Image.new("RGB", (30, 40)).save(folder / YEAR / "JPEGImages" / "000001.jpg")
    images = read(folder)
    with pytest.raises(DataError, match=r"000000.jpg does not decode"):
        images.pixels(0)
    with pytest.raises(DataError, match=r"000001.jpg must have .* \[30, 40\]"):
        images.pixels(1)


def test_drawn_cells_need_no_file(tmp_path):
    images = find_any("drawn-cells").load(tmp_path, offline=True)
    assert len(images) == 84
    assert images.truths[..., 4].unique().tolist() == [0, 1, 2]
    assert torch.equal(images.pixels(5), images.pixels(5))
    x1, y1, x2, y2 = images.truths[0, 0, :4].int().tolist()
    inside = images.pixels(0)[:, (y1 + y2) // 2, (x1 + x2) // 2]
    assert inside.max() <= 90  # cells are dark


REAL = {
    "bccd-voc-subset": (292, {1: 292, 2: 3348, 3: 301}, 0),
    "voc2007-subset": (92, None, 35),
}


@pytest.mark.parametrize("name", list(REAL))
def test_real_files(name):
    source = find_any(name)
    if source.status()[0].state == "missing":
        pytest.skip(f"{name} is not in {data_root()}")
    images = source.load(offline=True)
    count, boxes, difficult = REAL[name]
    labels = images.truths[..., 4]
    assert len(images) == count
    assert int(images.truths[..., 5].sum()) == difficult
    if boxes:
        assert {label: int((labels == label).sum()) for label in boxes} == boxes
    assert images.pixels(7).shape[1:] == tuple(images.sizes[7])


def test_a_subset_without_its_file_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"bccd_voc_subset.zip in .*no download"):
        find_any("bccd-voc-subset").load(tmp_path)


def test_a_zip_file_of_another_subset_is_refused(folder, tmp_path):
    (tmp_path / "bccd_voc_subset").mkdir()
    zipped(folder, tmp_path / "bccd_voc_subset" / "bccd_voc_subset.zip")
    with pytest.raises(DataError, match=r"must hold BCCD/ImageSets/Main/train.txt"):
        find_any("bccd-voc-subset").load(tmp_path)
