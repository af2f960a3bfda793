"""The lists of Stanford Online Products: which image is of which class and part."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.data.files.refusal import refuse
from metricopt.errors import DataError

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
