"""Drawn shapes in class folders, for the smoke tier; drawn when they are read."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from benchmarks.data.files.drawn import CORNERS, HUES, shape_png
from benchmarks.data.files.readers import Reader
from benchmarks.data.folders.contract import FOLDERS, TEST, TRAIN, FolderSource
from benchmarks.data.read_source import DrawnSource

EACH = {TRAIN: 60, TEST: 20}
"""Images of every class."""


@FOLDERS.register("drawn-folders")
class DrawnFolders(DrawnSource, FolderSource):
    """Six classes, a shape each of any hue: 360 images train, 120 test."""

    name = "drawn-folders"
    folder = "drawn-folders"
    expected = (360, 120, 6)
    digest = "fda569282a37aca07c3d40ea5aba6917c6e270c96afd38db1867c453db33a5eb"

    def _reader(self, folder: Path) -> Reader:
        return _Drawn()


class _Drawn(Reader):
    """Draws the image of a path, which names part, shape and number."""

    @property
    def sizes(self) -> Mapping[str, int]:
        return {
            f"{part}/shape{shape}/{number:03}.png": 0
            for part, count in EACH.items()
            for shape in range(len(CORNERS))
            for number in range(count)
        }

    def read(self, path: str) -> bytes:
        file = PurePosixPath(path)
        shape = int(file.parent.name.removeprefix("shape"))
        return shape_png(int(file.stem) % HUES, shape, path)
