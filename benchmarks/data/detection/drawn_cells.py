"""Drawn cells: small images that are drawn when they are read, for the smoke tier."""

import io
import random
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw

from benchmarks.data.detection.contract import DETECTION, DetectionSource
from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import DrawnSource

WIDE, HIGH, MOST = 96, 64, 4
TRAINED, TESTED = 60, 24
YEAR = "DRAWN"
Cell = tuple[str, tuple[int, int, int, int]]
"""Class and box, in 1-based pixels with both corners included."""


@DETECTION.register("drawn-cells")
class DrawnCells(DrawnSource, DetectionSource):
    """84 images with 1 to 4 discs and squares: 60 train, 24 test."""

    name = "drawn-cells"
    folder = "drawn-cells"
    expected = (TRAINED, TESTED)
    classes = ("disc", "square")
    lists = {"train": ((YEAR, "train"),), "test": ((YEAR, "test"),)}  # noqa: RUF012
    digest = "7ba6ac7a4543bf63d7cfef6f31cc770a3f2ba1bfc275345e723666cc25e149b8"

    def _reader(self, folder: Path) -> Reader:
        return _Drawn()


class _Drawn(Reader):
    """Draws the image of a path, or writes its annotation or a list."""

    @property
    def sizes(self) -> Mapping[str, int]:
        paths = [f"{YEAR}/ImageSets/Main/{part}.txt" for part in ("train", "test")]
        for name in map(str, range(TRAINED + TESTED)):
            paths += [f"{YEAR}/JPEGImages/{name}.jpg", f"{YEAR}/Annotations/{name}.xml"]
        return dict.fromkeys(paths, 0)

    def read(self, path: str) -> bytes:
        stem = Path(path).stem
        if path.endswith(".txt"):
            first, last = (0, TRAINED) if stem == "train" else (TRAINED, None)
            names = list(map(str, range(TRAINED + TESTED)))[first:last]
            return "\n".join(names).encode()
        chance = random.Random(f"cells {stem}")
        cells = _cells(chance)
        if path.endswith(".xml"):
            return _annotation(cells).encode()
        content = io.BytesIO()
        _draw(cells, chance).save(content, "PNG")
        return content.getvalue()


def _cells(chance: random.Random) -> list[Cell]:
    found: list[Cell] = []
    for _ in range(chance.randint(1, MOST)):
        wide, high = chance.randint(12, 24), chance.randint(12, 24)
        x, y = chance.randint(1, WIDE - wide), chance.randint(1, HIGH - high)
        kind = chance.choice(DrawnCells.classes)
        found.append((kind, (x, y, x + wide - 1, y + high - 1)))
    return found


def _draw(cells: list[Cell], chance: random.Random) -> Image.Image:
    image = Image.new("RGB", (WIDE, HIGH), (chance.randint(90, 160),) * 3)
    draw = ImageDraw.Draw(image)
    for _ in range(25):
        x, y = chance.randrange(WIDE), chance.randrange(HIGH)
        draw.line((x, y, x + 5, y + 3), fill=(chance.randrange(256),) * 3)
    for kind, (x1, y1, x2, y2) in cells:
        red, green, blue = (chance.randint(0, 90) for _ in range(3))
        shape = draw.ellipse if kind == "disc" else draw.rectangle
        shape((x1 - 1, y1 - 1, x2 - 1, y2 - 1), fill=(red, green, blue))
    return image


def _annotation(cells: list[Cell]) -> str:
    objects = [
        f"<object><name>{kind}</name><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin>"
        f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
        for kind, (x1, y1, x2, y2) in cells
    ]
    size = f"<size><width>{WIDE}</width><height>{HIGH}</height></size>"
    return f"<annotation>{size}{''.join(objects)}</annotation>"
