"""The contract of a listed data set: photographs that no array of one shape holds."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from PIL import Image
from torch import Tensor

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.decoding import rgb
from benchmarks.data.files.readers import FolderReader, Reader
from benchmarks.data.listed.lists import PARTS, read_lists
from benchmarks.data.read_source import ReadSource
from metricopt.errors import DataError
from metricopt.registry import Registry


@dataclass(frozen=True, eq=False)
class ListedImages:
    """All images of a data set, read one by one.

    Attributes:
        label: name of the data set, for records and captions.
        digest: sha256 of the lists, and of the size of every image.
        classes: class of every image, int64, shape [N].
        supers: super-category of every image, int64, shape [N].
        paths: paths of the images, relative to the lists.
        train_rows: images of the training part, which come first.
        reader: reads their files.
    """

    label: str
    digest: str
    classes: Tensor
    supers: Tensor
    paths: tuple[str, ...]
    train_rows: int
    reader: Reader

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, place: int) -> Image.Image:
        """Return an image as RGB; see `rgb`."""
        return rgb(self.reader, self.paths[place])


class ListedSource(ReadSource):
    """A data set of listed images.

    Attributes:
        expected: images of training, images, training classes and classes.
    """

    expected: ClassVar[tuple[int, int, int, int]]

    @property
    def count(self) -> int:
        """Number of images."""
        return self.expected[1]

    def _read(self, reader: Reader) -> ListedImages:
        images = listed(reader, self.name)
        train = images.train_rows
        learned = len(images.classes[:train].unique())
        found = (train, len(images), learned, len(images.classes.unique()))
        self._check(found, images.digest)
        return images

    def _counts(self, numbers: tuple[int, ...]) -> str:
        train, images, learned, classes = numbers
        return (
            f"{images:,} images of {classes:,} classes, {train:,} of {learned:,} to "
            "train"
        )


LISTED: Registry[type[ListedSource]] = Registry(
    "listed data set", "benchmarks.data.listed"
)
"""All listed data sets by name."""


def listed(reader: Reader, label: str) -> ListedImages:
    """Return the images that the lists name; every check is made before one is read.

    Raises:
        DataError: see `lists.read_lists`.
    """
    sizes = reader.sizes
    missing = [name for name in PARTS if name not in sizes]
    if missing:
        raise DataError(f"{label} needs {' and '.join(missing)}, which it lacks")
    texts = [reader.text(name) for name in PARTS]
    lines, train = read_lists(texts, sizes, label)
    facts = [*texts, *(f"{each.path} {sizes[each.path]}" for each in lines)]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    return ListedImages(
        label,
        digest,
        torch.tensor([each.kind for each in lines]),
        torch.tensor([each.group for each in lines]),
        tuple(each.path for each in lines),
        train,
        reader,
    )


def packed_or_not(folder: Path, archive: str, unpacked: str = "") -> Path | None:
    """Return the folder that holds the lists, or else the archive; None for neither.

    Args:
        folder: folder of the data set.
        archive: name of the zip file in it.
        unpacked: folder in it that holds the lists; empty for the folder itself.
    """
    inside, path = folder / unpacked, folder / archive
    if all((inside / name).is_file() for name in PARTS):
        return inside
    return path if path.is_file() else None


def opened(place: Path, remedy: str) -> Reader:
    """Return the reader of what `packed_or_not` found.

    Args:
        place: folder or archive.
        remedy: what to do where a file is damaged.

    Raises:
        DataError: if the archive is damaged.
    """
    if place.is_dir():
        return FolderReader(place, remedy=remedy)
    return ZipReader(place, PARTS[0], remedy=remedy)
