"""Three forms of the same images: 36 of them, 4 pixels wide."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np
from PIL import Image

from benchmarks.data.cifar10 import Cifar10, sheet_files
from benchmarks.data.files.variants import DataFile, Variant, array_digest

TRAIN, TEST = slice(0, 24), slice(24, 36)
LABELS = np.repeat([0, 1, 0, 1], [12, 12, 6, 6])
IMAGES = np.random.default_rng(0).integers(0, 256, (36, 4, 4, 3), dtype=np.uint8)
# Two equal images, and two that only their last bytes tell apart, above and below 128.
IMAGES[3] = IMAGES[0]
IMAGES[5] = IMAGES[4]
IMAGES[4:6, -1, -1, -1] = 200, 100


def in_order(images, labels):
    """Sort by label, then by every byte of the image from the first on."""
    pixels = images.reshape(len(images), -1)
    order = np.lexsort([*pixels.T[::-1], labels])
    return images[order], labels[order]


ORDERED = [in_order(IMAGES[part], LABELS[part]) for part in (TRAIN, TEST)]
INPUTS, TARGETS = map(np.concatenate, zip(*ORDERED, strict=True))


class Tiny(Cifar10):
    name = "tiny"
    classes = ("cat", "dog")
    sheet = (3, 2)
    specs = (
        Variant(
            name="full",
            shape=(36, 4, 4, 3),
            class_counts=(18, 18),
            digest=array_digest(INPUTS, TARGETS),
            train_rows=24,
            files=(DataFile("cifar-10-python.tar.gz", ("https://nowhere.invalid/",)),),
            alternatives=(
                (DataFile("cifar10.npz"),),
                sheet_files(("cat", "dog"), {"train": 12, "test": 6}, 6),
            ),
        ),
    )


def short(text):
    return b"U" + bytes([len(text)]) + text


def python2_pickle(data, labels):
    """Pickle a batch as Python 2 did: strings of bytes, and numpy.core by its name."""
    raw = data.tobytes()
    shape = b"M" + struct.pack("<H", len(data)) + b"M" + struct.pack("<H", len(data.T))
    parts = [
        b"\x80\x02}q\x01(" + short(b"batch_label") + short(b"training batch 1 of 5"),
        short(b"labels") + b"](" + b"".join(b"K" + bytes([n]) for n in labels) + b"e",
        short(b"data") + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n",
        b"K\x00\x85" + short(b"b") + b"\x87R(K\x01" + shape + b"\x86",
        b"cnumpy\ndtype\n" + short(b"u1") + b"K\x00K\x01\x87R(K\x03" + short(b"|"),
        b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89",
        b"T" + struct.pack("<i", len(raw)) + raw + b"tbu.",
    ]
    return b"".join(parts)


def python3_pickle(data, labels):
    return pickle.dumps({b"data": data, b"labels": labels.tolist()}, protocol=2)


def batches(dump=python2_pickle):
    """Pickle the images in another order, split as the official ones are."""
    order = np.random.default_rng(1).permutation(24)
    parts = [*np.array_split(order, 5), np.arange(24, 36)[::-1]]
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    planes = IMAGES.transpose(0, 3, 1, 2).reshape(36, -1)
    return {
        name: dump(planes[part], LABELS[part])
        for name, part in zip(names, parts, strict=True)
    }


def archive(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        for name, content in {"readme.html": b"<html>", **members}.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def arrays(**changes):
    """Pack the four arrays in another order, some of them changed or left out."""
    content = {
        "x_train": IMAGES[TRAIN][::-1],
        "y_train": LABELS[TRAIN][::-1].astype(np.uint8),
        "x_test": IMAGES[TEST][::-1],
        "y_test": LABELS[TEST][::-1, None],
    } | changes
    packed = io.BytesIO()
    np.savez(packed, **{name: a for name, a in content.items() if a is not None})
    return packed.getvalue()


def webp(pixels):
    packed = io.BytesIO()
    Image.fromarray(pixels).save(packed, "WEBP", lossless=True)
    return packed.getvalue()


def sheets():
    """Lay six images of one class on each sheet, two rows of three."""
    content = {}
    names = [file.stem for file in Tiny.specs[0].alternatives[-1]]
    for name, images in zip(names, IMAGES.reshape(6, 6, 4, 4, 3), strict=True):
        rows = [
            np.concatenate(list(row), axis=1) for row in images.reshape(2, 3, 4, 4, 3)
        ]
        content[name] = webp(np.concatenate(rows))
    return content


FORMS = {
    "archive": {"cifar-10-python.tar.gz": archive(batches())},
    "archive of Python 3": {"cifar-10-python.tar.gz": archive(batches(python3_pickle))},
    "arrays": {"cifar10.npz": arrays()},
    "sheets": sheets(),
}
