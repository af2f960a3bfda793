"""Images and class folders that are damaged, of another kind, or not what they seem."""

import io
import os
import random
import shutil
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.data.files.archives import TarReader, ZipReader
from benchmarks.data.files.decoded import decoded_at, pixels, rgb
from benchmarks.data.files.readers import LARGEST, FolderReader
from benchmarks.data.folders.contract import in_folders
from benchmarks.data.folders.imagenet import ImageNet
from metricopt.errors import DataError
from tests.benchmarks.data.folders.class_folders import CLASSES, jpeg, write_folders
from tests.robustness.hostile import (
    assert_refused,
    encoded,
    png,
    tarred,
    with_exif,
    within,
    zipped,
)

JPEG, PNG = encoded("JPEG", size=(200, 150)), encoded("PNG")
GREY = (b"IDAT", zlib.compress(bytes(8 * 7)))
BROKEN_PNG = PNG[:60] + bytes(4) + PNG[64:]
NO_IMAGE = "expected an image as JPEG, PNG, GIF, BMP, WEBP, got "
TOO_LARGE = "expected sides of 2 pixels or more and 67,108,864 pixels or less, got "
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage"


def read(folder, content):
    (folder / "a.jpg").write_bytes(content)
    return rgb(FolderReader(folder), "a.jpg")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", NO_IMAGE + "an empty file"),
        (bytes(1_000), NO_IMAGE + "a file beginning with b'\\x00"),
        (b"not found, sorry", NO_IMAGE + "a file beginning with b'not found, s'"),
        (b"<html>", NO_IMAGE + "a file beginning with b'<html>'"),
        (POSTSCRIPT, NO_IMAGE + "a file beginning with b'%!PS-Adobe-3'"),
        (encoded("TIFF"), NO_IMAGE + "a file beginning with b'II*"),
        (JPEG[: len(JPEG) // 2], "truncated"),
        (JPEG[:30], ""),
        (PNG[: len(PNG) // 2], ""),
        (BROKEN_PNG, ""),
        (png(8, 7, (b"IDAT", zlib.compress(bytes(20)))), ""),
        (png(8, 7), ""),
        (encoded("BMP")[:500], "truncated"),
        (encoded("WEBP")[:60], ""),
        (encoded("GIF")[:40], ""),
        (png(1, 1, (b"IDAT", zlib.compress(bytes(2)))), TOO_LARGE + "1 x 1"),
        (png(1, 7, GREY), TOO_LARGE + "1 x 7"),
        (png(9_000, 9_000, GREY), TOO_LARGE + "9,000 x 9,000"),
        (png(60_000, 60_000, GREY), "could be decompression bomb"),
        (png(8, 0, GREY), ""),
        (encoded("PNG", "I;16"), "expected 8 bits a channel, got the mode I;16"),
    ],
)
def test_an_image_that_is_none_is_named_with_what_is_wrong(tmp_path, content, said):
    where = f"{tmp_path / 'a.jpg'} does not decode: "
    with within(megabytes=400), assert_refused(where, said):
        read(tmp_path, content)


def palette(transparency):
    image = Image.linear_gradient("L").resize((40, 30)).quantize(16)
    content = io.BytesIO()
    image.save(content, "PNG", transparency=transparency)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        encoded("PNG", "RGBA"),
        encoded("PNG", "LA"),
        encoded("PNG", "1"),
        encoded("GIF"),
        encoded("WEBP", lossless=True),
        encoded("BMP"),
        encoded("JPEG", "CMYK"),
        palette(3),
    ],
)
def test_whole_images_are_read_as_before(tmp_path, content):
    with Image.open(io.BytesIO(content)) as image:
        expected = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(np.asarray(read(tmp_path, content)), expected)


def test_a_palette_with_transparent_colours_is_read_without_a_warning(tmp_path):
    found = read(tmp_path, palette(bytes([0, 128, 255])))
    np.testing.assert_array_equal(found, read(tmp_path, palette(None)))


def test_sixteen_bits_of_three_channels_are_their_upper_bytes(tmp_path):
    rows = b"".join(b"\0" + bytes([row, 255, 2 * row, 0, 9, 1]) * 8 for row in range(7))
    content = png(8, 7, (b"IDAT", zlib.compress(rows)), depth=16, colour=2)
    found = np.asarray(read(tmp_path, content))
    assert found[:, 3].tolist() == [[row, 2 * row, 9] for row in range(7)]


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data", "ignore:Truncated File Read")
@pytest.mark.parametrize(
    "exif",
    [
        b"",
        b"garbage",
        b"MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40,
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x05\0\x01\0\0\0\xff\xff\xff\x7f",
        b"II*\0" + struct.pack("<I", 8) + b"\x02\0" + bytes(24) * 2,
        random.Random(0).randbytes(60_000),
    ],
)
def test_garbage_in_exif_does_not_matter(tmp_path, exif):
    np.testing.assert_array_equal(
        np.asarray(read(tmp_path, with_exif(JPEG, exif))),
        np.asarray(read(tmp_path, JPEG)),
    )


@pytest.mark.parametrize("content", [JPEG, PNG, encoded("GIF"), encoded("WEBP")])
@pytest.mark.filterwarnings("ignore")
def test_whatever_byte_is_wrong_it_is_an_image_or_a_refusal(tmp_path, content):
    chance = random.Random(1)
    refused = 0
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            assert read(tmp_path, bytes(damaged)).mode == "RGB"
        except DataError as error:
            assert str(error).startswith(f"{tmp_path / 'a.jpg'} does not decode: ")
            refused += 1
    assert refused


def readers(folder, content):
    yield (folder / "a.jpg"), FolderReader(folder)
    members = [("data/a.jpg", content), ("data/list.txt", b"")]
    path = zipped(folder / "a.zip", members)
    yield f"a.jpg of {path}", ZipReader(path, "list.txt")
    path = tarred(folder / "a.tar", [(*each, {}) for each in members])
    yield f"a.jpg of {path}", TarReader(path, "data/")


def test_the_archive_of_a_damaged_image_is_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(JPEG[:200])
    for where, reader in readers(tmp_path, JPEG[:200]):
        with assert_refused(f"{where} does not decode: "):
            rgb(reader, "a.jpg")


@pytest.fixture
def folders(tmp_path, own_cache):
    return write_folders(tmp_path / "data", train=2, test=1)


def images_in(folders):
    return in_folders(FolderReader(folders, remedy="delete it"), "mini")


@pytest.mark.parametrize("limit", [1 << 20, 1])
def test_no_image_is_left_out_without_a_word(folders, limit):
    images = images_in(folders)
    for path in images.paths[:4]:
        (folders / path).write_bytes(JPEG[:300])
    with assert_refused("4 of 9 images of mini do not decode", "; delete it"):
        pixels(images, 8, limit=limit)
    assert not list((folders.parent / "cache" / "decoded").glob("*"))
    with assert_refused("1 of 9 images", f"{folders / images.paths[0]} does not"):
        decoded_at(images, 8, torch.tensor([0, 5]))


DAMAGES = [
    lambda content: b"",
    lambda content: content[:-40],
    lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
    lambda content: content.replace(b"(9, 8, 8, 3)", b"(9, 8, 8, 9)"),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=["empty", "cut", "flipped", "claim"])
def test_a_damaged_file_of_decoded_images_is_made_again(folders, damage):
    images, places = images_in(folders), torch.arange(9)
    expected = pixels(images, 8)(places)
    (path,) = (folders.parent / "cache" / "decoded").glob("*.npy")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=f"{path} is damaged and not used"):
        assert torch.equal(pixels(images, 8)(places), expected)
    assert torch.equal(pixels(images, 8)(places), expected)
    path.unlink()
    path.mkdir()
    with assert_refused(f"{path} must be a file, got a folder; delete it"):
        pixels(images, 8)


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


def train_alone(root):
    shutil.rmtree(root / "val")


def class_of_training(root):
    shutil.rmtree(root / "val" / A)


def texts(root):
    for each in (root / "val" / A).iterdir():
        each.rename(each.with_suffix(".txt"))


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
        (texts, [f"1 class folders without an image (val/{A})"]),
        (class_of_training, [f"1 class folders that the other part lacks (train/{A})"]),
        (train_alone, ["needs val/CLASS/*.JPEG, got no such"]),
        (written("train", "a.JPEG"), ["not in a class folder itself (train/a.JPEG)"]),
        (
            written(f"train/{A}/more", "a.JPEG"),
            [f"not in a class folder itself (train/{A}/more/a.JPEG)"],
        ),
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
