"""Faces of LFWcrop, for runs on a CPU: those of LFW cut to 64 x 64 pixels.

A fixed box of each image, without its background. No number on it is one of LFW.

Source: Sanderson and Lovell, "Multi-Region Probabilistic Histograms", ICB 2009.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from PIL import Image

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import Reader
from benchmarks.data.listed.contract import LISTED
from benchmarks.data.listed.faces import FaceReader, FaceSource, Pair
from benchmarks.data.read_source import SubsetSource

NAMES, PAIRS = "names.txt", "view2_pairs.csv"
SIDE, ACROSS, EACH = 64, 40, 1_000
"""Pixels of a face, faces in a row of a sheet, and faces of a sheet."""


@LISTED.register("lfwcrop")
class LFWCrop(SubsetSource, FaceSource):
    """6,613 faces of 1,209 people train, 2,551 of 471 others are the test."""

    name = "lfwcrop"
    folder = "lfwcrop"
    archive = "lfwcrop.zip"
    expected = (6_613, 9_164, 1_209, 1_680)
    note = "faces of LFW cut to 64 x 64 pixels, people with two images or more"

    def _published(self, folder: Path) -> Mapping[Path, str]:
        path = folder / self.archive
        return {path: "de0c835b57eff37d31e200bcd4e2fcab"} if path.is_file() else {}

    def _opened(self, folder: Path) -> Reader:
        path = folder / self.archive
        return _Sheets(ZipReader(path, NAMES, remedy=self.anew(path)))


class _Sheets(FaceReader):
    """Faces cut out of contact sheets."""

    def __init__(self, archive: Reader) -> None:
        self._archive, self.remedy = archive, archive.remedy
        self._sheet: tuple[int, Image.Image] | None = None

    @cached_property
    def faces(self) -> Mapping[str, str]:
        return {name: f"{name}.png" for name in self._archive.text(NAMES).split()}

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        rows = csv.DictReader(self._archive.text(PAIRS).splitlines())
        return [Pair(int(row["fold"]), row["first"], row["second"]) for row in rows]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {path: place for place, path in enumerate(self.faces.values())}

    def image(self, path: str) -> bytes:
        place = self._places[path]
        down, across = divmod(place % EACH, ACROSS)
        left, top = across * SIDE, down * SIDE
        box = (left, top, left + SIDE, top + SIDE)
        content = io.BytesIO()
        self._of(place // EACH).crop(box).save(content, "PNG")
        return content.getvalue()

    def _of(self, number: int) -> Image.Image:
        """Return a contact sheet; the last one is kept."""
        kept = self._sheet
        if kept is None or kept[0] != number:
            content = self._archive.read(f"sheets/{number * EACH:05d}.webp")
            sheet = Image.open(io.BytesIO(content), formats=["WEBP"]).convert("RGB")
            kept = self._sheet = (number, sheet)
        return kept[1]
