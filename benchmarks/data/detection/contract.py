"""The contract of a data set of objects in images, in the layout of PASCAL VOC."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from benchmarks.data.detection.annotations import Annotation, read_annotation
from benchmarks.data.files.decoded import ReadImages
from benchmarks.data.files.readers import MORE, Reader, named
from benchmarks.data.read_source import DividedSource
from metricopt.detection.truths import COLUMNS
from metricopt.errors import DataError
from metricopt.registry import Registry

VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair"),
    *("cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant"),
    *("sheep", "sofa", "train", "tvmonitor"),
)


@dataclass(frozen=True, eq=False)
class DetectionImages(ReadImages):
    """All images of a data set; the digest is of lists, annotations and all sizes.

    Attributes:
        classes: names of the classes; the first one has label 1.
        sizes: height and width of every image, as its annotation says, int64, [N, 2].
        truths: objects, float32, shape [N, G, 6]; see `metricopt.detection.truths`.
        parts: places of the images of `train` and `test`, int64.
    """

    classes: tuple[str, ...]
    sizes: Tensor
    truths: Tensor
    parts: Mapping[str, Tensor]

    def pixels(self, place: int) -> Tensor:
        """Return an image as bytes, RGB, uint8, shape [3, H, W].

        Raises:
            DataError: if it does not decode, or has another size than its annotation
                says; the message names it.
        """
        path = self.paths[place]
        try:
            array = np.array(self.read(place))
        except DataError as error:
            raise DataError(f"{error}; {self.reader.remedy}") from error
        found, expected = list(array.shape[:2]), self.sizes[place].tolist()
        if found != expected:
            raise DataError(
                f"{self.reader.where(path)} must have the height and width {expected} "
                f"of its annotation, got {found}; {self.reader.remedy}"
            )
        return torch.from_numpy(array).permute(2, 0, 1)


class DetectionSource(DividedSource):
    """A data set of objects in images.

    Attributes:
        classes: names of the classes; the first one has label 1.
        lists: lists of the parts, as (folder of the year, name of the list).
    """

    counts = "({}, {}) images to train and test"
    classes: ClassVar[tuple[str, ...]]
    lists: ClassVar[Mapping[str, Sequence[tuple[str, str]]]]

    def _read(self, reader: Reader) -> DetectionImages:
        images = in_devkit(reader, self.lists, self.classes, self.name)
        found = (len(images.parts["train"]), len(images.parts["test"]))
        self._check(found, images.digest)
        return images


DETECTION: Registry[type[DetectionSource]] = Registry(
    "data set of detection", "benchmarks.data.detection"
)
"""All data sets of detection by name."""


def in_devkit(
    reader: Reader,
    lists: Mapping[str, Sequence[tuple[str, str]]],
    classes: Sequence[str],
    label: str,
) -> DetectionImages:
    """Return the images of a VOCdevkit; every check is made before a pixel is read.

    Args:
        reader: reader of the devkit; paths begin with the folder of a year.
        lists: lists of the parts, as (folder of the year, name of the list).
        classes: names of the classes.
        label: name of the data set.

    Raises:
        DataError: if a list, an image or an annotation is missing or malformed, or an
            image is in two parts.
    """
    sizes = reader.sizes
    names = {part: _names(reader, sizes, own, label) for part, own in lists.items()}
    every = [name for part in names.values() for name in part]
    _check_listed(every, sizes, label)
    notes, facts = [], []
    for stem in every:
        content = reader.read(_annotation(stem))
        where = reader.where(_annotation(stem))
        notes.append(read_annotation(content, classes, where))
        facts += [_image(stem), str(sizes[_image(stem)]), content.decode("latin-1")]
    cut = [name for name, note in zip(every, notes, strict=True) if note.cut]
    if cut:
        warnings.warn(
            f"boxes of {len(cut)} images of {label} reach beyond their image by a "
            f"pixel or less, and are cut: {named(sorted(cut), MORE)}",
            stacklevel=2,
        )
    starts = torch.tensor([len(part) for part in names.values()]).cumsum(0)
    places = torch.arange(len(every)).tensor_split(starts[:-1])
    return DetectionImages(
        label,
        hashlib.sha256("\n".join(facts).encode()).hexdigest(),
        tuple(map(_image, every)),
        reader,
        tuple(classes),
        torch.tensor([note.size for note in notes]),
        _packed(notes),
        dict(zip(names, places, strict=True)),
    )


def _names(
    reader: Reader,
    sizes: Mapping[str, int],
    lists: Sequence[tuple[str, str]],
    label: str,
) -> list[str]:
    """Return year and name of every image of some lists, as `year/name`."""
    found = []
    for year, name in lists:
        path = f"{year}/ImageSets/Main/{name}.txt"
        if path not in sizes:
            raise DataError(f"{label} needs {path}, which it lacks")
        lines = reader.text(path).split("\n")
        found += [f"{year}/{line.strip()}" for line in lines if line.strip()]
    if not found:
        raise DataError(f"{label} must list at least one image, got none")
    return found


def _check_listed(names: Sequence[str], sizes: Mapping[str, int], label: str) -> None:
    """Check that every image is listed once, and there with its annotation."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{label} lists images twice, expected once: {named(sorted(twice), MORE)}"
        )
    for what, path in (("image", _image), ("annotation", _annotation)):
        missing = [path(name) for name in names if path(name) not in sizes]
        if missing:
            raise DataError(
                f"{label} lacks the {what} of a list: {named(sorted(missing), MORE)}"
            )


def _image(stem: str) -> str:
    year, name = stem.split("/", 1)
    return f"{year}/JPEGImages/{name}.jpg"


def _annotation(stem: str) -> str:
    year, name = stem.split("/", 1)
    return f"{year}/Annotations/{name}.xml"


def _packed(notes: Sequence[Annotation]) -> Tensor:
    most = max(1, *(len(note.objects) for note in notes), 1)
    found = torch.zeros(len(notes), most, COLUMNS)
    for row, note in zip(found, notes, strict=True):
        if note.objects:
            row[: len(note.objects)] = torch.tensor(note.objects)
    return found
