"""The annotations of PASCAL VOC: one XML file for each image."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from metricopt.errors import DataError

LARGEST = 1 << 20
"""Bytes of an annotation."""
MOST = 1_000
"""Objects of an image; all images take room for as many as one has."""
LONGEST = 1 << 16
"""Pixels of a side of an image."""
BEYOND = 1.0
"""Pixels by which a box may reach beyond its image; it is cut, and that is said."""
SIDES = ("xmin", "ymin", "xmax", "ymax")
DIFFICULT = {"": 0.0, "0": 0.0, "1": 1.0}
SHOWN = 40
"""Characters of what came that an error shows."""


@dataclass(frozen=True)
class Annotation:
    """The objects of an image.

    Attributes:
        size: height and width, as the annotation says.
        objects: box x1, y1, x2, y2 in continuous pixels, label from 1 on, and whether
            it is difficult, of every object.
        cut: number of boxes that reached beyond the image.
    """

    size: tuple[int, int]
    objects: tuple[tuple[float, ...], ...]
    cut: int


def read_annotation(content: bytes, classes: Sequence[str], where: str) -> Annotation:
    """Return the objects of an image.

    Boxes of PASCAL VOC are 1-based pixels, both corners included. Continuous ones begin
    one earlier: pixel 1 reaches from 0 to 1.

    Args:
        content: content of the XML file.
        classes: their names, in the order of their labels.
        where: the file, for messages.

    Raises:
        DataError: if it is no annotation, has too many objects or one of an unknown
            class, or a box that is none, has no area or lies outside of the image.
    """
    root = _parsed(content, where)
    high, wide = (_number(root, f"size/{side}", where) for side in ("height", "width"))
    if not all(1 <= side <= LONGEST and side.is_integer() for side in (high, wide)):
        raise DataError(
            f"{where} needs a size of 1 to {LONGEST:,} pixels a side, got {wide:g} x "
            f"{high:g}"
        )
    size = (int(high), int(wide))
    objects = list(root.iter("object"))
    if len(objects) > MOST:
        raise DataError(
            f"{where} must have {MOST:,} objects or fewer, got {len(objects):,}"
        )
    boxes = [_box(each, size, where) for each in objects]
    rows = [
        (*box, *_facts(each, classes, where))
        for each, (box, _) in zip(objects, boxes, strict=True)
    ]
    return Annotation(size, tuple(rows), sum(cut for _, cut in boxes))


def _parsed(content: bytes, where: str) -> ElementTree.Element:
    """Return the root of a file; nothing in it can stand for more than it is.

    Raises:
        DataError: if it is no XML, too large, declares a document type, or is of an
            encoding that could hide one.
    """
    if (
        len(content) > LARGEST
        or b"\0" in content  # of UTF-16
        or b"<!DOCTYPE" in content
        or b"<!ENTITY" in content
    ):
        raise DataError(
            f"{where} must be a plain annotation in UTF-8 of {LARGEST:,} bytes or "
            f"less, got {len(content):,} bytes, or a document type"
        )
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"{where} is no XML: {error}") from error


def _box(
    each: ElementTree.Element, size: tuple[int, int], where: str
) -> tuple[tuple[float, ...], bool]:
    """Return the box of an object in continuous pixels, and whether it was cut."""
    sides = [_number(each, f"bndbox/{side}", where) for side in SIDES]
    given = ", ".join(f"{side:g}" for side in sides)
    x1, y1, x2, y2 = sides[0] - 1, sides[1] - 1, sides[2], sides[3]
    high, wide = size
    if min(x1, y1) < -BEYOND or x2 > wide + BEYOND or y2 > high + BEYOND:
        raise DataError(
            f"{where} has a box {given} outside of its image of {wide} x {high} pixels"
        )
    box = (max(x1, 0.0), max(y1, 0.0), min(x2, wide), min(y2, high))
    if not (box[2] > box[0] and box[3] > box[1]):
        raise DataError(f"{where} has a box {given} without area")
    return box, box != (x1, y1, x2, y2)


def _facts(
    each: ElementTree.Element, classes: Sequence[str], where: str
) -> tuple[float, float]:
    """Return the label of an object, and whether it is difficult."""
    name = _text(each, "name", where)
    if name not in classes:
        raise DataError(
            f"{where} has an object of class {name[:SHOWN]!r}; known: "
            f"{', '.join(classes)}"
        )
    difficult = (each.findtext("difficult") or "").strip()
    if difficult not in DIFFICULT:
        raise DataError(
            f"{where} must say 0 or 1 of whether an object is difficult, got "
            f"{difficult[:SHOWN]!r}"
        )
    return float(classes.index(name) + 1), DIFFICULT[difficult]


def _number(root: ElementTree.Element, path: str, where: str) -> float:
    text = _text(root, path, where)
    try:
        # Python reads 1_0 as 10.
        found = math.nan if "_" in text else float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{where} needs a number {path}, got {text[:SHOWN]!r}")
    return found


def _text(root: ElementTree.Element, path: str, where: str) -> str:
    """Return the text of the one element at a path.

    Raises:
        DataError: if there is none, or more than one.
    """
    found = [(each.text or "").strip() for each in root.findall(path)]
    if len(found) != 1:
        raise DataError(f"{where} needs one {path} in {root.tag}, got {len(found)}")
    return found[0]
