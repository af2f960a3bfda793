"""Batches of images, tables and texts that are cut off, too long, or lie."""

import io
import struct
import zipfile

import numpy as np
import pytest

from benchmarks.data.registry import find_source
from tests.benchmarks.data.cifar10_forms import (
    FORMS,
    Tiny,
    archive,
    arrays,
    batches,
    webp,
)
from tests.benchmarks.data.toy_data import Toy, covtype_row
from tests.robustness.hostile import assert_refused, encoded, relabelled, within

pytestmark = pytest.mark.usefixtures("own_cache")


def load(source, root, content):
    folder = root / source.name
    folder.mkdir()
    for name, data in content.items():
        (folder / name).write_bytes(data)
    with within(megabytes=500):
        return source.load(root, offline=True)


def pickled(*operations):
    return b"\x80\x02" + b"".join(operations) + b"."


HUGE_ARRAY = pickled(b"cnumpy\nndarray\n", b"(\x8a\x06\x00\x00\x00\x00\x00\x40tR")
BATCHES = {
    "an array of 70 TB": HUGE_ARRAY,
    "nothing on the stack": pickled(b"R"),
    "a name that is none": pickled(b"h\x05"),
    "a string of 2 GB": pickled(b"T\xff\xff\xff\x7fabc"),
    "a pickle of depth": b"(" * 200_000 + b".",
    "a state for what has none": pickled(b"}}b"),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_hostile_batch_is_named(tmp_path, name):
    content = archive(batches() | {"data_batch_2": BATCHES[name]})
    with assert_refused("tar.gz cannot be parsed (data_batch_2: ", "delete it and run"):
        load(Tiny(), tmp_path, {"cifar-10-python.tar.gz": content})


def npy(shape, kind="|u1"):
    """The head of an array without its numbers."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head = head.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def npz(root, member, **claims):
    """The four arrays with another member for `x_train`, and what is claimed of it."""
    path = root / "made.npz"
    with (
        zipfile.ZipFile(io.BytesIO(arrays())) as old,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, member if name == "x_train.npy" else old.read(name))
    return relabelled(path, "x_train.npy", **claims).read_bytes()


@pytest.mark.parametrize(
    ("member", "claims"),
    [
        (npy((100, 10**12)), {}),
        (npy((10**6, 32, 32, 3)), {"size": 3 << 30}),
        (npy((1 << 20,), "<f8"), {}),
        (npy((-5, 4)), {}),
        (npy("(()"), {}),
        (npy("(9,)", "|O"), {}),
        (b"\x93NUMPY\x09\x00", {}),
        (npy((24, 4, 4, 3)), {"method": 99}),
        (npy((24, 4, 4, 3)), {"flags": 1}),
    ],
)
def test_a_hostile_npz_file_of_images_is_refused(tmp_path, member, claims):
    content = npz(tmp_path, member, **claims)
    with assert_refused("cifar10.npz cannot be parsed (", "delete it and run"):
        load(Tiny(), tmp_path, {"cifar10.npz": content})


def webp_claiming(wide, high):
    content = bytearray(encoded("WEBP", lossless=True))
    at = content.index(b"VP8L") + 9
    bits = (wide - 1) | ((high - 1) << 14)
    content[at : at + 4] = struct.pack("<I", bits)
    return bytes(content)


SHEET = "train_dog_00018.webp"
NO_SHEET = "is not a whole WebP image"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (webp(np.zeros((8, 16, 3), np.uint8)), "expected (12, 8) pixels, got (16, 8)"),
        (webp(np.zeros((12, 8, 3), np.uint8)), "expected (12, 8) pixels, got (8, 12)"),
        (webp_claiming(16_384, 16_384), ""),
        (webp_claiming(12, 8), ""),
        *((each, NO_SHEET) for each in (FORMS["sheets"][SHEET][:-20], bytes(99), b"")),
    ],
)
def test_a_wrong_sheet_of_images_is_named(tmp_path, content, said):
    sheets = FORMS["sheets"] | {SHEET: content}
    where = f"train_cat_00000.webp and 5 more cannot be parsed ({SHEET}"
    with assert_refused(where, said, "data fetch tiny"):
        load(Tiny(), tmp_path, sheets)


ROW = covtype_row(1)


FIELDS = ("9" * 30, "1" + "0" * 5_000, "nan", "1e999", "", "one", "1,1", "\xe91")
LINES = [ROW + ROW.replace("1,", f"{field},", 1) for field in FIELDS]
LINES += [ROW + ROW[10:], ROW + "\0" * 100, '"' + ROW, "\n\n\n", ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "cannot be parsed (") for text in LINES),
        (ROW + covtype_row(2, 60), "cannot be parsed ("),
        (covtype_row(1, 53), "expected 55 numbers per row, got 54"),
        (covtype_row(8), "expected classes 1 to 7, got 8 to 8"),
        (covtype_row(0), "expected classes 1 to 7, got 0 to 0"),
        (ROW, "expected inputs of shape (581012, 54), got (1, 54)"),
    ],
)
def test_a_wrong_table_is_named_in_one_line(tmp_path, text, said):
    content = {"covtype.data": text.encode("latin-1")}
    with assert_refused("covtype.data ", said, "data fetch covtype"):
        load(find_source("covtype"), tmp_path, content)


WRONG_ROWS = [f"+1 {row}" for row in ("9" * 20 + ":1", "-5:1", "124:1", "1:one", "1")]


@pytest.mark.parametrize("line", [*WRONG_ROWS, "\xe9 1:1", "+1,+2 1:1", "+1 3:1 2:1"])
def test_a_text_of_sparse_rows_with_a_wrong_line_is_named(tmp_path, line):
    content = {"a9a": f"+1 1:1\n{line}\n".encode("latin-1"), "a9a.t": b"-1 2:1\n"}
    with assert_refused("a9a.t cannot be parsed (", "data fetch a9a"):
        load(find_source("a9a"), tmp_path, content)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"1 0\n2 -1\n3 1\n", "expected classes 0 to 1, got -1 to 1"),
        (b"1 0\n2 1e17\n3 1\n", "expected classes 0 to 1, got 0 to 1000"),
        (b"1 0\n2 nan\n3 1\n", ""),
        (b"1e300 0\n2 1\n3 1\n", ""),
        (b"1 0\n2 1 9\n3 1\n", "cannot be parsed"),
        (b"1 0\n2 x\n3 1\n", "could not convert string to float: b'x'"),
        (b"1 0\n2 1\n", "expected inputs of shape (3, 1), got (2, 1)"),
        (b"1 0\n2 0\n3 1\n", "expected (1, 2) examples per class, got (2, 1)"),
        (b"1 0\n2 1\n7 1\n", "expected the digest "),
    ],
)
def test_wrong_numbers_and_labels_are_refused_and_not_cached(tmp_path, text, said):
    """Classes were counted first: that of 10^17 took room for all below."""
    with assert_refused("toy.data ", said, "copy the right file there"):
        load(Toy(), tmp_path, {"toy.data": text})
    assert not (tmp_path / "cache" / "parsed").exists()
