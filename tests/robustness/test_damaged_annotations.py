"""Annotations and lists that are damaged, or written to do harm."""

import pytest
import torch

from benchmarks.data.detection import voc
from benchmarks.data.detection.annotations import LARGEST, MOST, read_annotation
from benchmarks.data.detection.contract import in_devkit
from benchmarks.data.detection.voc import VOC07
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.listed.contract import listed
from benchmarks.data.listed.sop import StanfordOnlineProducts
from metricopt.detection.truths import pack_truths
from tests.benchmarks.data.detection.devkit import (
    CLASSES,
    YEAR,
    tarred,
    write_devkit,
    xml,
)
from tests.benchmarks.data.listed.miniature import write_miniature
from tests.robustness.hostile import assert_refused, within


def laughs():
    """A document of a few lines that unfolds to gigabytes."""
    lines = ['<!ENTITY b0 "laughs">']
    for n in range(9):
        lines.append(f'<!ENTITY b{n + 1} "' + f"&b{n};" * 10 + '">')
    return f"<!DOCTYPE a [{''.join(lines)}]><annotation>&b9;</annotation>"


LAUGHS = laughs()
BOX = (1, 1, 10, 20)
WHOLE = xml(("disc", BOX, 0))
SIZE = "needs a size of 1 to 65,536 pixels a side, got "
PLAIN = "must be a plain annotation in UTF-8"


def doubled(tag, within):
    """Put an element into an annotation a second time."""
    start, end = within.index(f"<{tag}>"), within.index(f"</{tag}>") + len(tag) + 3
    return within[:end] + within[start:end] + within[end:]


def box(*sides):
    return xml(("disc", sides, 0))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LAUGHS, PLAIN),
        (LAUGHS.encode("utf-16"), PLAIN),
        (LAUGHS.encode("utf-16-le"), PLAIN),
        (WHOLE.encode("utf-32"), PLAIN),
        (b"\xff\xfe\xfd" + WHOLE.encode(), "is no XML"),
        (WHOLE.replace("disc", "d\xedsc").encode("latin-1"), "is no XML"),
        (WHOLE[:90], "is no XML"),
        ('<?xml version="1.0" encoding="utf-7"?>' + WHOLE, "is no XML"),
        ('<?xml version="1.0" encoding="cp037"?>' + WHOLE, "is no XML"),
        ("<html><body>Not found</body></html>", "needs one size/height in html, got 0"),
        ("<a>" * 100_000, "is no XML"),
        ("<a>" * 100_000 + "</a>" * 100_000, "needs one size/height in a, got 0"),
        (xml(size=(0, 30)), SIZE),
        (xml(size=(-40, 30)), SIZE),
        (xml(size=("1e300", 30)), SIZE + "1e+300"),
        (xml(size=("1" * 400, 30)), "needs a number size/width, got '1111"),
        (xml(size=(40.5, 30)), SIZE + "40.5"),
        (xml(size=("nan", 30)), "needs a number size/width, got 'nan'"),
        (doubled("size", WHOLE), "needs one size/height in annotation, got 2"),
        (doubled("bndbox", WHOLE), "needs one bndbox/xmin in object, got 2"),
        (doubled("name", WHOLE), "needs one name in object, got 2"),
        (WHOLE.replace("bndbox", "box"), "needs one bndbox/xmin in object, got 0"),
        (xml(("tree" * 9_999, BOX, 0)), "class 'treetree"),
        (xml(("disc", BOX, "maybe")), "must say 0 or 1 of whether an object is diffic"),
        (box(10, 1, 9, 20), "without area"),
        (box("1_0", 1, 20, 20), "needs a number bndbox/xmin, got '1_0'"),
        (box("-inf", 1, 20, 20), "needs a number bndbox/xmin, got '-inf'"),
        (box("9" * 400, 1, 20, 20), "needs a number bndbox/xmin, got '999"),
        (box(-1, 1, 20, 20), "outside of its image of 40 x 30"),
        (box(1, 1, 20, 32), "outside of its image of 40 x 30"),
        (box(1, 1, 60, 20), "outside of its image of 40 x 30"),
        (box("", 1, 20, 20), "needs a number bndbox/xmin, got ''"),
        ("", "is no XML"),
        (" " * (LARGEST + 1), PLAIN),
        (xml(*[("disc", BOX, 0)] * (MOST + 1)), "1,000 objects or fewer, got 1,001"),
    ],
)
def test_a_wrong_annotation_is_named_with_what_is_wrong(content, said):
    content = content.encode() if isinstance(content, str) else content
    with within(megabytes=200), assert_refused("a.xml ", said):
        read_annotation(content, CLASSES, "a.xml")


@pytest.fixture
def devkit(tmp_path, monkeypatch):
    monkeypatch.setattr(VOC07, "expected", (3, 2))
    monkeypatch.setattr(VOC07, "classes", CLASSES)
    # Its import takes seconds.
    names = {"2007": "trainval.tar", "2007-test": "test.tar"}
    known = {key: {"filename": name, "md5": "c52e279"} for key, name in names.items()}
    monkeypatch.setattr(voc, "_archive", known.get)
    return write_devkit(tmp_path / "voc" / "VOCdevkit")


def test_many_boxes_in_one_image_take_no_room_in_all(devkit):
    """A tensor of all images has as many rows for each as the fullest one needs."""
    path = devkit / YEAR / "Annotations" / "000001.xml"
    path.write_text(xml(*[("disc", BOX, 0)] * 4_000))
    lists = {"train": [(YEAR, "trainval")], "test": [(YEAR, "test")]}
    with assert_refused(f"{path} must have 1,000 objects or fewer, got 4,000"):
        in_devkit(FolderReader(devkit), lists, CLASSES, "mini")


def test_a_box_that_is_cut_is_not_cut_in_silence(devkit):
    path = devkit / YEAR / "Annotations" / "000001.xml"
    path.write_text(xml(("disc", (0, 1, 41, 30), 0)))
    said = r"boxes of 1 images of voc07 reach beyond .* are cut: VOC2007/000001"
    with pytest.warns(UserWarning, match=said):
        found = VOC07().load(devkit.parents[1], offline=True)
    assert found.truths[1, 0, :4].tolist() == [0, 0, 40, 30]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"000000\n00\xe9001\n", "must be text in UTF-8, got the byte 0xe9 in line 2"),
        (b"000000 1\n000001 -1\n", "lacks the image of a list"),
        (b"000000\n00\x0b001\n", r"'VOC2007/JPEGImages/00\x0b001.jpg'"),
        (b"", "must list at least one image"),
    ],
)
def test_a_wrong_list_of_a_devkit_names_the_way_out(devkit, content, said):
    (devkit / YEAR / "ImageSets" / "Main" / "trainval.txt").write_bytes(content)
    way_out = f"delete {devkit} and run `./reproduce.sh data fetch voc07`"
    with assert_refused(said, way_out):
        VOC07().load(devkit.parents[1], offline=True)


def test_a_list_may_begin_with_the_mark_of_its_encoding(devkit):
    path = devkit / YEAR / "ImageSets" / "Main" / "trainval.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(VOC07().load(devkit.parents[1], offline=True).parts["train"]) == 3


@pytest.mark.parametrize("packed", [False, True])
def test_every_refusal_of_a_devkit_names_the_way_out(devkit, packed):
    broken = devkit / YEAR / "Annotations" / "000001.xml"
    (devkit / YEAR / "JPEGImages" / "000000.jpg").write_bytes(b"<html>")
    root, whole = devkit.parents[1], broken.read_text()
    names = ("trainval.tar", "test.tar")
    paths = [devkit.parent / name for name in names]

    def source():
        if packed:
            for path in paths:
                tarred(devkit, path)
            devkit.rename(root / "aside")
        return VOC07()

    way_out = f"delete {paths[0]} and {paths[1]} and run" if packed else str(devkit)
    images = source().load(root, offline=True)
    with assert_refused("000000.jpg", "does not decode", way_out, "data fetch voc07"):
        images.pixels(0)
    if packed:
        (root / "aside").rename(devkit)
    broken.write_text(whole[:50])
    where = f"000001.xml of {paths[0]}" if packed else str(broken)
    with assert_refused(where, "is no XML", way_out, "data fetch voc07"):
        source().load(root, offline=True)


def test_an_altered_archive_of_voc_is_found_by_verify(devkit):
    """The digest covers names and sizes: a flipped bit of a pixel went unseen."""
    names = ("trainval.tar", "test.tar")
    for name in names:
        tarred(devkit, devkit.parent / name)
    root = devkit.parents[1]
    devkit.rename(root / "aside")
    with assert_refused(f"{names[0]} is not the expected file: expected md5", "delete"):
        VOC07().verify(root)


@pytest.fixture
def products(tmp_path, monkeypatch):
    monkeypatch.setattr(StanfordOnlineProducts, "expected", (18, 30, 6, 10))
    return write_miniature(tmp_path / "sop" / "Stanford_Online_Products")


LISTS = [
    (b"2 1 1 ", b"2 1 ", ["line 3 of Ebay_train.txt must be three numbers and a path"]),
    (b"2 1 1 ", b"9" * 20 + b" 1 1 ", ["line 3 of Ebay", "have 7 digits at most"]),
    (b"2 1 1 ", b"9" * 5_000 + b" 1 1 ", ["line 3 of", "have 7 digits at most"]),
    (b"2 1 1 ", "\u0662 1 1 ".encode(), ["line 3 of Ebay_train.txt must be three"]),
    (b"2 1 1 ", b"-2 1 1 ", ["line 3 of Ebay_train.txt must be three numbers"]),
    (b"2 1 1 ", b"2 1.5 1 ", ["line 3 of Ebay_train.txt must be three numbers"]),
    (b"2 1 1 ", b"2 1 2 ", ["1 classes of more than one super-category (1)"]),
    (b"1_1.JPG", b"1_0.JPG", ["1 images that are listed twice (bicycle_final/0000"]),
    (b"1_1.JPG", b"1_\xe9.JPG", ["UTF-8, got the byte 0xe9 in line 3"]),
    (
        b"1_1.JPG",
        b"1_\x1b.JPG",
        [r"are missing ('bicycle_final/000000000001_\x1b.JPG'"],
    ),
    (b"bicycle", b"../bicycle", ["listed images that are missing"]),
]


@pytest.mark.parametrize(("old", "new", "said"), LISTS)
def test_a_wrong_list_of_products_names_the_way_out(products, old, new, said):
    path = products / "Ebay_train.txt"
    path.write_bytes(path.read_bytes().replace(old, new))
    way_out = f"delete {products} and run `./reproduce.sh data fetch sop`"
    with within(), assert_refused(*said, way_out):
        StanfordOnlineProducts().load(products.parents[1], offline=True)


def test_no_image_or_another_number_names_the_way_out(products, monkeypatch):
    monkeypatch.setattr(StanfordOnlineProducts, "expected", (18, 31, 6, 10))
    with assert_refused("sop must have 31 images", "got 30", f"delete {products} and"):
        StanfordOnlineProducts().load(products.parents[1], offline=True)
    path = products / "Ebay_test.txt"
    path.write_text(path.read_text().splitlines()[0] + "\n\n \n")
    with assert_refused("Ebay_test.txt must list at least one image, got none"):
        listed(FolderReader(products), "mini")


def test_an_archive_of_products_that_is_damaged_does_not_hide_the_others(tmp_path):
    """To say whether it is there, the archive was opened: `data status` failed."""
    path = tmp_path / "sop" / "Stanford_Online_Products.zip"
    path.parent.mkdir()
    path.write_bytes(b"<html>")
    source = StanfordOnlineProducts()
    assert source.status(tmp_path)[0].state == "present"
    with assert_refused(f"{path} cannot be read", f"delete {path} and run"):
        source.load(tmp_path, offline=True)
    with assert_refused(f"{path} is not the expected file: expected md5 7f73d41a"):
        source.verify(tmp_path)


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan, -torch.inf])
def test_a_box_without_end_is_refused(wrong):
    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [0.0, 1.0, 5.0, wrong]])
    with assert_refused("image 0 needs boxes x1, y1, x2, y2 with an area, got [0.0,"):
        pack_truths([{"boxes": boxes, "labels": torch.tensor([1, 2])}])
