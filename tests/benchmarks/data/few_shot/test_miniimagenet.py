"""miniImageNet from lists and a copy of ImageNet, in miniature."""

import hashlib

import pytest

from benchmarks.data.few_shot.miniimagenet import MiniImageNet
from benchmarks.data.folders.imagenet import ImageNet
from metricopt.errors import DataError
from tests.benchmarks.data.few_shot.miniature import (
    lines,
    write_list,
    write_miniimagenet,
)
from tests.benchmarks.data.folders.class_folders import jpeg

CLASSES = {"train": ("n01532829", "n01558993"), "val": ("n01855672",)}
CLASSES |= {"test": ("n01930112",)}
NUMBERS = (3, 20, 100, 7)
"""Numbers of the images of a class in ImageNet; as text, they have another order."""
PLACES = (1, 3)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root with four classes of four images, two of them listed."""
    files = {"numbers": NUMBERS, "places": PLACES}
    write_miniimagenet(tmp_path, monkeypatch, CLASSES, **files)
    return tmp_path


def assert_refused(root, said):
    with pytest.raises(DataError, match=said):
        MiniImageNet().load(root, offline=True)


def test_the_lists_count_images_in_the_order_of_their_numbers(root):
    images = MiniImageNet().verify(root)
    assert images.paths[:2] == (
        "train/n01532829/n01532829_3.JPEG",
        "train/n01532829/n01532829_20.JPEG",
    )
    assert images.classes == tuple(n for names in CLASSES.values() for n in names)
    assert images.parts == ("train", "train", "val", "test")
    assert images.targets.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (images.side, images.ink) == (84, False)
    assert images.read(0).size == (12, 16)


def test_other_classes_of_imagenet_are_not_looked_at(root):
    before = MiniImageNet().load(root, offline=True).digest
    (root / "imagenet" / "train" / "n09999999").symlink_to(root)
    assert MiniImageNet().load(root, offline=True).digest == before


def test_missing_lists_are_named_with_the_command(root):
    (root / "miniimagenet" / "val.csv").unlink()
    assert_refused(
        root, r"needs val.csv in .*; run `./reproduce.sh data fetch miniimagenet`"
    )


def test_another_list_is_refused(root):
    path = root / "miniimagenet" / "val.csv"
    path.write_text(path.read_text() + lines("n01532829", PLACES)[0])
    assert_refused(root, r"val.csv is not the expected file: expected md5 .*; delete")


def test_without_imagenet_the_way_to_it_is_named(root, monkeypatch):
    (root / "imagenet").rename(root / "elsewhere")
    assert_refused(
        root, r"needs the training images of ImageNet in .*data fetch imagenet`"
    )
    monkeypatch.setattr(ImageNet, "fetch", lambda _, root, **options: [root])
    assert MiniImageNet().fetch(root) == [root]
    assert MiniImageNet().status(root)[0].state == "missing"


def test_imagenet_without_its_validation_images_will_do(root):
    assert MiniImageNet().fetch(root) == []
    assert MiniImageNet().status(root)[0].state == "present"


def test_missing_classes_are_named(root):
    images = root / "imagenet" / "train"
    (images / "n01855672").rename(images / "birds")
    assert_refused(
        root, r"1 listed classes not in .*train \(n01855672\).*; put the official"
    )


def test_too_few_images_of_a_class_are_named(root):
    for number in NUMBERS[:2]:
        path = root / "imagenet" / "train" / "n01855672" / f"n01855672_{number}.JPEG"
        path.unlink()
    assert_refused(
        root, r"fewer images than the lists need \(n01855672: image 3 of 2\)"
    )


@pytest.mark.parametrize("name", CLASSES["train"] + CLASSES["val"])
def test_all_images_of_imagenet_are_counted(root, name):
    path = root / "imagenet" / "train" / name / f"{name}_100.JPEG"
    path.rename(path.with_suffix(".jpeg.part"))
    assert_refused(root, "must have 16 images, got 15; the lists of miniimagenet")
    with pytest.raises(DataError, match="must have 16 images, got 15"):
        MiniImageNet().verify(root)


def test_images_of_other_names_are_refused(root):
    (root / "imagenet" / "train" / "n01855672" / "bird.jpg").write_bytes(jpeg())
    assert_refused(
        root, r"1 images not called WNID_NUMBER.JPEG \(train/n01855672/bird.jpg\)"
    )


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (lines("n01532829", PLACES), r"1 classes in more than one list \(n01532829\)"),
        (lines("n01855672", (1, 2, 3)), r"not listed with 2 images \(n01855672: 3\)"),
        (["bird.jpg,n01855672"], r"line 2 of val.csv must name .* got 'bird.jpg,n0"),
        (["n0185567200000001.jpg,n01532829"], "line 2 of val.csv must name an image"),
        (["n0185567200000000.jpg,n01855672"], "line 2 of val.csv must name an image"),
    ],
)
def test_wrong_lists_are_refused(root, listed, said, monkeypatch):
    write_list(root, "val", listed, monkeypatch)
    assert_refused(root, said)


def test_a_list_without_its_header_is_refused(root, monkeypatch):
    write_list(root, "val", lines("n01855672", PLACES), monkeypatch)
    path = root / "miniimagenet" / "val.csv"
    path.write_text(path.read_text().removeprefix("filename,label\n"))
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(MiniImageNet, "lists", MiniImageNet.lists | {"val": md5})
    assert_refused(root, "val.csv must begin with filename,label, got")
