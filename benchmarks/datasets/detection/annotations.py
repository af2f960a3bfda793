"""The annotations of PASCAL VOC: one XML file for each image."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from metricopt.errors import DataError

LARGEST = 1 << 20
"""Bytes of an annotation."""
BEYOND = 1.0
"""Pixels by which a box may reach beyond its image; it is cut."""
SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class Annotation:
    """The objects of an image.

    Attributes:
        size: height and width, as the annotation says.
        objects: box x1, y1, x2, y2 in continuous pixels, label from 1 on, and whether
            it is difficult, of every object.
    """

    size: tuple[int, int]
    objects: tuple[tuple[float, ...], ...]


def read_annotation(content: bytes, classes: Sequence[str], where: str) -> Annotation:
    """Return the objects of an image.

    Boxes of PASCAL VOC are 1-based pixels, both corners included. Continuous ones begin
    one earlier: pixel 1 reaches from 0 to 1.

    Args:
        content: of the XML file.
        classes: their names, in the order of their labels.
        where: the file, for messages.

    Raises:
        DataError: if it is no annotation, has an unknown class, or a box without area
            or outside of the image.
    """
    if len(content) > LARGEST or b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError(
            f"{where} must be a plain annotation of {LARGEST:,} bytes or less, got "
            f"{len(content):,} bytes, or a document type"
        )
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"{where} is no XML: {error}") from error
    high, wide = (_number(root, f"size/{side}", where) for side in ("height", "width"))
    if not (high >= 1 and wide >= 1):
        raise DataError(f"{where} needs a size of pixels, got {wide:g} x {high:g}")
    size = (int(high), int(wide))
    found = (_object(each, classes, size, where) for each in root.iter("object"))
    return Annotation(size, tuple(found))


def _object(
    each: ElementTree.Element, classes: Sequence[str], size: tuple[int, int], where: str
) -> tuple[float, ...]:
    name = (each.findtext("name") or "").strip()
    if name not in classes:
        raise DataError(
            f"{where} has an object of class {name!r}; known: {', '.join(classes)}"
        )
    box = [_number(each, f"bndbox/{side}", where) for side in SIDES]
    given = ", ".join(f"{side:g}" for side in box)
    x1, y1, x2, y2 = box[0] - 1, box[1] - 1, box[2], box[3]
    high, wide = size
    if min(x1, y1) < -BEYOND or x2 > wide + BEYOND or y2 > high + BEYOND:
        raise DataError(
            f"{where} has a box {given} outside of its image of {wide} x {high} pixels"
        )
    x1, y1, x2, y2 = max(x1, 0.0), max(y1, 0.0), min(x2, wide), min(y2, high)
    if not (x2 > x1 and y2 > y1):
        raise DataError(f"{where} has a box {given} without area")
    difficult = (each.findtext("difficult") or "0").strip() not in ("", "0")
    return (x1, y1, x2, y2, float(classes.index(name) + 1), float(difficult))


def _number(root: ElementTree.Element, path: str, where: str) -> float:
    text = root.findtext(path)
    try:
        found = float(text or "")
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{where} needs a number {path}, got {text!r}")
    return found
