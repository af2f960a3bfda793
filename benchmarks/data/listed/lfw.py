"""Labeled Faces in the Wild: 13,233 images of 5,749 people, 250 x 250 pixels.

The layout of its authors: `lfw/<Person>/<Person>_0001.jpg` and `pairs.txt`, the pairs
of view 2.

Source: G. B. Huang et al., "Labeled Faces in the Wild", UMass 07-49, 2007.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from benchmarks.data.files.readers import FolderReader, Reader
from benchmarks.data.listed.contract import LISTED
from benchmarks.data.listed.faces import FaceReader, FaceSource, Pair
from metricopt.errors import DataError

PAIRS, IMAGES = "pairs.txt", "lfw"


@LISTED.register("lfw")
class LabeledFaces(FaceSource):
    """6,613 faces of 1,209 people train, 2,551 of 471 others are the test."""

    name = "lfw"
    folder = "lfw"
    expected = (6_613, 9_164, 1_209, 1_680)

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        raise DataError(self._by_hand(folder))

    def _is_there(self, folder: Path) -> bool:
        return (folder / PAIRS).is_file() and (folder / IMAGES).is_dir()

    def _reader(self, folder: Path) -> Reader:
        if not self._is_there(folder):
            raise DataError(self._by_hand(folder))
        return _Folders(FolderReader(folder, remedy=self._by_hand(folder)))

    def _by_hand(self, folder: Path) -> str:
        return (
            f"lfw needs {PAIRS} and the folder {IMAGES} with a folder for every person "
            f"in {folder}; unpack lfw.tgz of its authors there, which has no download "
            "here"
        )


class _Folders(FaceReader):
    """Faces in a folder for every person, with the official list of pairs."""

    def __init__(self, files: Reader) -> None:
        self._files, self.remedy = files, files.remedy

    @cached_property
    def faces(self) -> Mapping[str, str]:
        paths = sorted(path for path in self._files.sizes if path.endswith(".jpg"))
        return {Path(path).stem: path for path in paths}

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        first, *lines = self._files.text(PAIRS).splitlines() or [""]
        try:
            folds, each = map(int, first.split())
            fields = [line.split() for line in lines if line.strip()]
            if len(fields) != 2 * folds * each:
                raise ValueError
            return [
                _pair(1 + place // (2 * each), line)
                for place, line in enumerate(fields)
            ]
        except ValueError as error:
            raise DataError(
                f"{PAIRS} must begin with the number of folds and of pairs of either "
                "kind in each, then list them as a person with two numbers or two "
                f"people with a number each; got {first[:40]!r} before {len(lines)} "
                "lines"
            ) from error

    def image(self, path: str) -> bytes:
        return self._files.read(path)


def _pair(fold: int, fields: Sequence[str]) -> Pair:
    """Return the pair of a line.

    Raises:
        ValueError: if it is malformed.
    """
    if len(fields) == 3:
        person, first, second = fields
        fields = [person, first, person, second]
    one, first, other, second = fields
    return Pair(fold, f"{one}_{int(first):04d}", f"{other}_{int(second):04d}")
