"""The contract of a few-shot data set: many classes, divided so that none is in two."""

import hashlib
from collections import defaultdict
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

PARTS = TRAIN, VALIDATION, TEST = "train", "val", "test"
"""The parts that classes are divided into, as folders and lists call them."""
IMAGES = (".jpeg", ".jpg", ".png")

Members = Mapping[str, Sequence[str]]
"""Paths of the images of every class."""


@dataclass(frozen=True, eq=False)
class ClassImages(ReadImages):
    """All images of a data set; the digest is of every class, path and size.

    Attributes:
        classes: names of the C classes, in alphabetical order.
        targets: class of every image, int64 in [0, C), ascending, shape [N].
        parts: the part that the data set gives to every class; empty if it gives none.
        side: pixels of a side at which learners see the images.
        ink: whether they are strokes on a light ground, which are inverted into one
            channel; otherwise they have three channels.
    """

    classes: tuple[str, ...]
    targets: Tensor
    parts: tuple[str, ...]
    side: int
    ink: bool


class FewShotSource(ReadSource):
    """A data set of many classes.

    Attributes:
        expected: images, then classes to train, to validate and to test; images and
            classes if the data set does not divide its classes.
        side: see `ClassImages`.
        ink: see `ClassImages`.
    """

    counts = "{:,} images of {:,}, {:,} and {:,} classes to train, validate and test"
    side: ClassVar[int]
    ink: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """Number of images."""
        return self.expected[0]

    def _read(self, reader: Reader) -> ClassImages:
        members, parts = self._members(reader)
        images = self._images(reader, members, parts)
        given = [images.parts.count(part) for part in PARTS if parts]
        found = (len(images), *(given or [len(images.classes)]))
        self._check(found, images.digest)
        return images

    def _members(self, reader: Reader) -> tuple[Members, Mapping[str, str]]:
        """Return the images of every class, and its part; no parts if none are given.

        Raises:
            DataError: if files are missing or malformed.
        """
        return in_part_folders(reader, self.name)

    def _images(
        self, reader: Reader, members: Members, parts: Mapping[str, str]
    ) -> ClassImages:
        sizes = reader.sizes
        classes = tuple(sorted(members))
        pairs = [(name, path) for name in classes for path in members[name]]
        facts = (
            f"{parts.get(name)} {name} {path} {sizes[path]}" for name, path in pairs
        )
        return ClassImages(
            self.name,
            hashlib.sha256("\n".join(facts).encode()).hexdigest(),
            tuple(path for _, path in pairs),
            reader,
            classes,
            torch.arange(len(classes)).repeat_interleave(
                torch.tensor([len(members[name]) for name in classes])
            ),
            tuple(parts[name] for name in classes if parts),
            self.side,
            self.ink,
        )


FEW_SHOT: Registry[type[FewShotSource]] = Registry(
    "few-shot data set", "benchmarks.data.few_shot"
)
"""All few-shot data sets by name."""


def in_part_folders(reader: Reader, label: str) -> tuple[Members, dict[str, str]]:
    """Return the images of `PART/CLASS/IMAGE`, and the part of every class.

    Files that are no images are left alone.

    Args:
        reader: reader of the data set.
        label: name of the data set.

    Raises:
        DataError: if a part has no class, a class is in two parts, or an image is not
            in the folder of a class.
    """
    members: dict[str, list[str]] = defaultdict(list)
    found: dict[str, set[str]] = defaultdict(set)
    misplaced = []
    for path in sorted(reader.sizes):
        if not path.lower().endswith(IMAGES):
            continue
        pieces = PurePosixPath(path).parts
        if len(pieces) != 3 or pieces[0] not in PARTS:
            misplaced.append(path)
            continue
        members[pieces[1]].append(path)
        found[pieces[1]].add(pieces[0])
    refuse(label, f"images outside {'|'.join(PARTS)}/CLASS", misplaced)
    both = sorted(name for name, parts in found.items() if len(parts) > 1)
    refuse(label, "classes in more than one part", both)
    parts = {name: min(own) for name, own in found.items()}
    for part in PARTS:
        if part not in parts.values():
            raise DataError(f"{label} needs {part}/CLASS/*.JPEG, got no such image")
    return members, parts
