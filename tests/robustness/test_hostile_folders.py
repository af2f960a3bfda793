"""Class folders with links, odd names, and files that are none."""

import os
import shutil

import pytest

from benchmarks.data.files.readers import LARGEST, FolderReader
from benchmarks.data.folders.contract import in_folders
from benchmarks.data.folders.imagenet import ImageNet
from tests.benchmarks.data.folders.class_folders import CLASSES, jpeg, write_folders
from tests.robustness.hostile import assert_refused, within

A, B, C = CLASSES


@pytest.fixture
def root(tmp_path):
    return write_folders(tmp_path / "imagenet", train=2, test=1)


def loaded(root):
    with within():
        return in_folders(FolderReader(root), "mini")


def linked(place, target):
    place.symlink_to(target, target_is_directory=True)


def loop(root):
    linked(root / "train" / A / "again", root / "train")


def loop_to_itself(root):
    linked(root / "train" / A / "self.JPEG", root / "train" / A / "self.JPEG")


def class_twice(root):
    for part in ("train", "val"):
        linked(root / part / "n9", root / part / A)


def train_is_the_test(root):
    shutil.rmtree(root / "val")
    linked(root / "val", root / "train")


def dangling(root):
    linked(root / "train" / B / "lost.JPEG", root / "nowhere")


def fifo(root):
    os.mkfifo(root / "val" / B / "pipe.JPEG")


def empty_class(root):
    for part in ("train", "val"):
        (root / part / "n9").mkdir()


def written(folder, name, content=None):
    """Return what writes an image into a folder, by names that may be bytes."""

    def change(root):
        path = os.path.join(os.fsencode(root), os.fsencode(folder))
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, os.fsencode(name)), "wb") as file:
            file.write(jpeg() if content is None else content)

    return change


no_utf8 = written(b"train/n\xff", "a.JPEG")
no_utf8_image = written(f"train/{A}", b"\xe9\xff.JPEG")
newline = written(f"train/{A}", "a\nb.JPEG")
other_format = written(f"train/{A}", "a.WEBP", b"")
notebook = written("train/.ipynb_checkpoints", "a.JPEG")


def alike(root):
    for part in ("train", "val"):
        written(f"{part}/{A.upper()}", "a.JPEG")(root)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (loop, ["train/n01440764/again are one folder, through a link"]),
        (loop_to_itself, ["self.JPEG cannot be read: Too many levels of symbolic"]),
        (class_twice, ["n9", A, "are one folder, through a link"]),
        (train_is_the_test, ["train", "val", " are one folder, through a link"]),
        (dangling, ["lost.JPEG cannot be read: No such file or directory"]),
        (fifo, ["pipe.JPEG must be a file or a folder, got neither"]),
        (empty_class, ["1 class folders without an image (train/n9)"]),
        (no_utf8, [r"names are no text of one line ('train/n\udcff/a.JPEG')"]),
        (no_utf8_image, [r"no text of one line ('train/n01440764/\udce9\udcff"]),
        (newline, [r"names are no text of one line ('train/n01440764/a\nb.JPEG')"]),
        (alike, ["2 class folders whose names differ in case alone (N01440764, n01"]),
        (
            other_format,
            ["1 images that are none of .jpeg, .jpg, .png (train/n01440764"],
        ),
        (notebook, ["the other part lacks (train/.ipynb_checkpoints)"]),
    ],
)
def test_no_class_and_no_image_is_left_out_without_a_word(root, change, said):
    change(root)
    with assert_refused(*said):
        loaded(root)


def test_parts_and_classes_may_lie_on_another_disk(root, tmp_path):
    """Linked folders were not entered: nothing seemed to be there."""
    expected = loaded(root)
    (root / "train" / A).rename(tmp_path / "elsewhere")
    linked(root / "train" / A, tmp_path / "elsewhere")
    (root / "val").rename(tmp_path / "val")
    linked(root / "val", tmp_path / "val")
    found = loaded(root)
    assert (found.digest, found.paths) == (expected.digest, expected.paths)
    assert found.read(0).tobytes() == expected.read(0).tobytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(root):
    (root / "train" / A).chmod(0)
    with assert_refused(f"{root / 'train' / A} cannot be read: Permission denied"):
        loaded(root)


def test_an_image_of_no_end_or_lost_since_is_named(root):
    images = loaded(root)
    path = root / images.paths[0]
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    said = f"{path} has 1,099,511,627,776 bytes, expected {LARGEST:,} or less"
    with within(megabytes=400), assert_refused(said):
        images.read(0)
    path.unlink()
    with assert_refused(f"{path} cannot be read: "):
        images.read(0)


@pytest.mark.parametrize("change", [notebook, loop, newline, empty_class])
def test_what_is_wrong_in_imagenet_names_the_way_out(root, change):
    change(root)
    parts = f"delete {root / 'train'} and {root / 'val'} and run"
    with assert_refused("put the right files there, or", parts, "data fetch imagenet"):
        ImageNet().load(root.parent, offline=True)


def test_one_part_alone_is_not_unpacked_over(root):
    """Renaming the unpacked folder over the one that was there failed at the end."""
    (root / "val").rename(root / "aside")
    said = f"needs the folders train and val in {root}, got train alone; put the other"
    with assert_refused(said):
        ImageNet().fetch(root.parent)
