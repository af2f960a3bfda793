"""Tiny ImageNet: 100 of its classes with 60 images each, divided as in miniImageNet.

Which classes train and which test is not from a publication: no number on it is one of
miniImageNet.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.few_shot.contract import (
    FEW_SHOT,
    FewShotSource,
    Members,
    in_part_folders,
)
from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.read_source import SubsetSource
from metricopt.errors import DataError

LIST, COLUMNS = "classes.csv", ("split", "wnid")


@FEW_SHOT.register("tinyimagenet-fewshot100")
class TinyImageNet100(SubsetSource, FewShotSource):
    """6,000 images of 64 x 64 pixels: 64, 16 and 20 classes."""

    name = "tinyimagenet-fewshot100"
    folder = "tinyimagenet_fewshot100"
    archive = "tinyimagenet_fewshot100.zip"
    expected = (6_000, 64, 16, 20)
    digest = "772399df899324c043a1b014f21877af049a806a700473d1ea3a20625ac6cc99"
    note = "100 of 200 classes of Tiny ImageNet with 60 of 500 images each"
    side = 64

    def _published(self, folder: Path) -> Mapping[Path, str]:
        path = folder / self.archive
        return {path: "f399d8cc702ce467e0582d2b79e0aff9"} if path.is_file() else {}

    def _opened(self, folder: Path) -> Reader:
        path = folder / self.archive
        return ZipReader(path, LIST, remedy=self.anew(path))

    def _members(self, reader: Reader) -> tuple[Members, Mapping[str, str]]:
        members, parts = in_part_folders(reader, self.name)
        rows = csv.DictReader(reader.text(LIST).splitlines())
        if not set(COLUMNS) <= set(rows.fieldnames or ()):
            found = ",".join(rows.fieldnames or ())
            raise DataError(f"{LIST} must have {','.join(COLUMNS)}, got {found}")
        split, wnid = COLUMNS
        named = {(row[wnid], row[split]) for row in rows}
        wrong = sorted(f"{part}/{name}" for name, part in named ^ set(parts.items()))
        refuse(self.name, f"folders that differ from {LIST}", wrong)
        return members, parts
