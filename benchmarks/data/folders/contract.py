"""The contract of a data set whose images lie in a folder for every class."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

import torch
from torch import Tensor

from benchmarks.data.files.decoded import ReadImages
from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.read_source import ReadSource
from metricopt.errors import DataError
from metricopt.registry import Registry

TRAIN, TEST = "train", "val"
"""Folders of the parts, as torchvision's `ImageNet` unpacks them."""
SUFFIXES = (".jpeg", ".jpg", ".png")
OTHERS = (".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
"""Suffixes of images that are not read, and would be missed without a word."""


@dataclass(frozen=True, eq=False)
class FolderImages(ReadImages):
    """All images of a data set; the digest is of every path and size.

    Attributes:
        classes: names of the C folders, in alphabetical order.
        targets: class of every image, int64 in [0, C), shape [N].
        train_rows: images of the training part, which come first.
    """

    classes: tuple[str, ...]
    targets: Tensor
    train_rows: int


class FolderSource(ReadSource):
    """A data set of images in `train/CLASS` and `val/CLASS`.

    Attributes:
        expected: images of training and test, and classes.
    """

    expected: ClassVar[tuple[int, int, int]]
    counts = "{:,} images to train and {:,} to test, of {:,} classes"

    @property
    def count(self) -> int:
        """Number of images."""
        return sum(self.expected[:2])

    def _read(self, reader: Reader) -> FolderImages:
        images = in_folders(reader, self.name)
        train = images.train_rows
        found = (train, len(images) - train, len(images.classes))
        self._check(found, images.digest)
        return images


FOLDERS: Registry[type[FolderSource]] = Registry(
    "data set of class folders", "benchmarks.data.folders"
)
"""All data sets of class folders by name."""


def in_folders(reader: Reader, label: str) -> FolderImages:
    """Return the images of class folders; every check is made before one is read.

    Files that are no images are left alone.

    Args:
        reader: reader of the data set; paths begin with `train/` or `val/`.
        label: name of the data set.

    Raises:
        DataError: if a part or a class is missing, a class folder holds no image, an
            image is not in a class folder itself or of another format, or names differ
            in case alone or are no text.
    """
    sizes = reader.sizes
    parts = {part: _by_class(sizes, part, label) for part in (TRAIN, TEST)}
    classes = _shared_classes(parts, label)
    paths: list[str] = []
    targets: list[int] = []
    for part in parts.values():
        for target, name in enumerate(classes):
            own = sorted(part[name])
            paths += own
            targets += [target] * len(own)
    facts = "\n".join(f"{path} {sizes[path]}" for path in paths)
    return FolderImages(
        label,
        hashlib.sha256(facts.encode()).hexdigest(),
        tuple(paths),
        reader,
        classes,
        torch.tensor(targets),
        sum(len(each) for each in parts[TRAIN].values()),
    )


def _by_class(sizes: Mapping[str, int], part: str, label: str) -> dict[str, list[str]]:
    """Return the paths of a part by class folder; a folder may hold no image."""
    found: dict[str, list[str]] = defaultdict(list)
    misplaced, others = [], []
    for path in sizes:
        pieces = PurePosixPath(path).parts
        if not pieces or pieces[0] != part:
            continue
        image = path.lower().endswith(SUFFIXES)
        if path.lower().endswith(OTHERS):
            others.append(path)
        # The path of an empty folder ends in a slash.
        if len(pieces) == 3 or (len(pieces) == 2 and path.endswith("/")):
            own = found[pieces[1]]
            if image:
                own.append(path)
        elif image:
            misplaced.append(path)
    refuse(label, "images that are not in a class folder itself", sorted(misplaced))
    refuse(label, f"images that are none of {', '.join(SUFFIXES)}", sorted(others))
    if not found:
        raise DataError(f"{label} needs {part}/CLASS/*.JPEG, got no such folder")
    empty = [f"{part}/{name}" for name, own in found.items() if not own]
    refuse(label, "class folders without an image", sorted(empty))
    unnamed = [path for own in found.values() for path in own if not path.isprintable()]
    refuse(label, "images whose names are no text of one line", sorted(unnamed))
    return found


def _shared_classes(
    parts: Mapping[str, Mapping[str, Sequence[str]]], label: str
) -> tuple[str, ...]:
    """Return the classes of both parts, in alphabetical order."""
    counts = Counter(name for part in parts.values() for name in part)
    alone = [
        f"{part}/{name}"
        for part, names in parts.items()
        for name in names
        if counts[name] == 1
    ]
    refuse(label, "class folders that the other part lacks", sorted(alone))
    alike = Counter(name.casefold() for name in counts)
    twice = [name for name in counts if alike[name.casefold()] > 1]
    refuse(label, "class folders whose names differ in case alone", sorted(twice))
    return tuple(sorted(counts))
