"""Listed data sets: photographs in lists, as those of Stanford Online Products."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.decoded import ReadImages
from benchmarks.data.files.readers import FolderReader, Reader, refuse
from benchmarks.data.read_source import ReadSource
from metricopt.errors import DataError
from metricopt.registry import Registry

Name = TypeVar("Name", int, str)
HEADER = "image_id class_id super_class_id path"
PARTS = ("Ebay_train.txt", "Ebay_test.txt")
DIGITS = 7
"""Digits of the largest number; some counts take room for every number below."""


@dataclass(frozen=True)
class Listed:
    """A line of a list.

    Attributes:
        image: number of the image, unique in the data set.
        kind: number of its class.
        group: number of its super-category.
        path: path of the image, relative to the lists.
    """

    image: int
    kind: int
    group: int
    path: str


def read_lists(
    texts: Sequence[str], present: Collection[str], label: str
) -> tuple[list[Listed], int]:
    """Return all images of both lists, those of training first, and how many these are.

    Args:
        texts: content of the training list, then of the test list.
        present: paths of the images that are there.
        label: name of the data set, for messages.

    Raises:
        DataError: if a list is malformed, an image is listed twice or missing, a test
            class is a training class, or a class has one image or two super-categories.
    """
    train, test = (
        list(_lines(text, name)) for text, name in zip(texts, PARTS, strict=True)
    )
    found = [*train, *test]
    refuse(label, "ids that are listed twice", _repeated(each.image for each in found))
    refuse(label, "images that are listed twice", _repeated(e.path for e in found))
    known = set(present)
    refuse(
        label,
        "listed images that are missing",
        [each.path for each in found if each.path not in known],
    )
    kinds = [{each.kind for each in part} for part in (train, test)]
    both = sorted(kinds[0] & kinds[1])
    refuse(label, "test classes that are training classes", both)
    every = [each.kind for each in found]
    alone = sorted(set(every) - set(_repeated(every)))
    refuse(label, "classes with one image, which can be no query", alone)
    pairs = {(each.kind, each.group) for each in found}
    several = _repeated(kind for kind, _ in pairs)
    refuse(label, "classes of more than one super-category", several)
    return found, len(train)


def _lines(text: str, name: str) -> Iterator[Listed]:
    first, *lines = text.splitlines() or [""]
    if first.split() != HEADER.split():
        raise DataError(f"{name} must begin with {HEADER!r}, got {first[:60]!r}")
    for number, line in enumerate(lines, 2):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or not all(map(_is_number, fields[:3])):
            raise DataError(
                f"line {number} of {name} must be three numbers and a path, got "
                f"{line[:60]!r}; numbers have {DIGITS} digits at most"
            )
        yield Listed(int(fields[0]), int(fields[1]), int(fields[2]), fields[3])
    if not any(map(str.split, lines)):
        raise DataError(f"{name} must list at least one image, got none")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS


def _repeated(values: Iterable[Name]) -> list[Name]:
    return sorted(value for value, count in Counter(values).items() if count > 1)


@dataclass(frozen=True, eq=False)
class ListedImages(ReadImages):
    """All images of a data set; the digest is of the lists and all sizes.

    Attributes:
        classes: class of every image, int64, shape [N].
        supers: super-category of every image, int64, shape [N].
        train_rows: images of the training part, which come first.
        pairs: places of the two images of pairs that the test consists of, shape
            [P, 2]; None where every image of the other classes is one of the test.
    """

    classes: Tensor
    supers: Tensor
    train_rows: int
    pairs: Tensor | None = None


class ListedSource(ReadSource):
    """A data set of listed images.

    Attributes:
        expected: images of training, images, training classes and classes.
        paired: whether the test is listed pairs of images.
    """

    expected: ClassVar[tuple[int, int, int, int]]
    paired: ClassVar[bool] = False
    counts = "{1:,} images of {3:,} classes, {0:,} of {2:,} to train"

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
        tuple(each.path for each in lines),
        reader,
        torch.tensor([each.kind for each in lines]),
        torch.tensor([each.group for each in lines]),
        train,
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
