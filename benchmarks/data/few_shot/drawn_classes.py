"""Drawn shapes of many classes, for the smoke tier; drawn when they are read."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from benchmarks.data.few_shot.contract import (
    FEW_SHOT,
    PARTS,
    FewShotSource,
)
from benchmarks.data.files.drawn import CORNERS, HUES, shape_png
from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import DrawnSource

CLASSES = (20, 6, 10)
"""Classes to train, validate and test: a shape and a hue each."""
EACH = 20
"""Images of every class."""


@FEW_SHOT.register("drawn-classes")
class DrawnClasses(DrawnSource, FewShotSource):
    """36 classes of 20 images: 20, 6 and 10 classes."""

    name = "drawn-classes"
    folder = "drawn-classes"
    expected = (EACH * sum(CLASSES), *CLASSES)
    digest = "93a9c55f33312431bec0d826fd3d3e3990f501ff27ede3cd5812480771e3c80b"
    side = 28

    def _reader(self, folder: Path) -> Reader:
        return _Drawn()


class _Drawn(Reader):
    """Draws the image of a path, which names part, shape, hue and number."""

    @property
    def sizes(self) -> Mapping[str, int]:
        parts = [
            part
            for part, count in zip(PARTS, CLASSES, strict=True)
            for _ in range(count)
        ]
        kinds = [(shape, hue) for hue in range(HUES) for shape in range(len(CORNERS))]
        return {
            f"{part}/shape{shape}-hue{hue}/{number:03}.png": 0
            for part, (shape, hue) in zip(parts, kinds, strict=True)
            for number in range(EACH)
        }

    def read(self, path: str) -> bytes:
        shape, _, hue = PurePosixPath(path).parent.name.partition("-")
        corner = int(shape.removeprefix("shape"))
        return shape_png(int(hue.removeprefix("hue")), corner, path)
