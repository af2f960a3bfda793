"""Drawn shapes: small images that are drawn when they are read, for the smoke tier."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.drawn import CORNERS, HUES, shape_png
from benchmarks.data.files.readers import Reader
from benchmarks.data.listed.contract import HEADER, LISTED, PARTS, ListedSource
from benchmarks.data.read_source import DrawnSource

EACH = 6
TRAINED = 4
"""Hues whose classes train; those of the others are the test."""


@LISTED.register("drawn-shapes")
class DrawnShapes(DrawnSource, ListedSource):
    """36 classes, a shape and a hue each, with 6 images: 24 train, 12 test."""

    name = "drawn-shapes"
    folder = "drawn-shapes"
    expected = (144, 216, 24, 36)
    digest = "1b3f4e068895f55f1fc56d337789a8fb7343fce389c3936ce991ab56c7f35a1f"

    def _reader(self, folder: Path) -> Reader:
        return _Drawn()


class _Drawn(Reader):
    """Draws the image of a path, which names hue, shape and number."""

    @property
    def sizes(self) -> Mapping[str, int]:
        paths = [path for part in _lists() for _, _, _, path in part]
        return dict.fromkeys([*PARTS, *paths], 0)

    def read(self, path: str) -> bytes:
        if path in PARTS:
            lines = (" ".join(map(str, line)) for line in _lists()[PARTS.index(path)])
            return "\n".join([HEADER, *lines]).encode()
        hue, shape, _ = (int(each) for each in path[:-4].split("-"))
        return shape_png(hue, shape, path)


def _lists() -> tuple[list[tuple[int, int, int, str]], ...]:
    """Return image, class, super-category and path of training, then of test."""
    parts: tuple[list[tuple[int, int, int, str]], ...] = ([], [])
    count = 0
    for hue in range(HUES):
        for shape in range(len(CORNERS)):
            for number in range(EACH):
                count += 1
                kind = hue * len(CORNERS) + shape + 1
                line = (count, kind, shape + 1, f"{hue}-{shape}-{number}.png")
                parts[int(hue >= TRAINED)].append(line)
    return parts
