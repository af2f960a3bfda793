"""Leeds Sports Pose, extended: a part of its people, cut out of their photographs.

Source: Johnson and Everingham, CVPR 2011.
"""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.poses.contract import (
    POSES,
    TEST,
    TRAIN,
    PersonImages,
    PoseSource,
    check_joints,
    digest_of_people,
    extents,
    require_parts,
)
from benchmarks.data.poses.sports_joints import LEEDS, MASK, torsos
from benchmarks.data.read_source import SubsetSource
from metricopt.errors import DataError

LIST = "joints.csv"
SIDES = (120.0, 160.0)
"""Width and height of every image."""
MARGIN = 1 / 12
"""What the box leaves of an image on either side: images are 1.5 times as wide and high
as the joints, boxes 1.25 times."""
SERIES = 100
"""Images of consecutive numbers come from one series of photographs."""
NAME = re.compile(r"(?:train|val|test)/im(\d{5})\.webp")


@POSES.register("lspet-subset")
class LeedsSubset(SubsetSource, PoseSource):
    """3,195 people of all poses; those of `train` and `val` are to learn from."""

    name = "lspet-subset"
    folder = "lspet_subset"
    archive = "lspet_subset.zip"
    expected = (2_813, 382)
    skeleton = LEEDS
    digest = "b36538e671c551c22268c702b96e28cac6fc8efa71b5032118fcab9259e8499e"
    note = "3,195 of 10,000 people, cut to 120 x 160 pixels; the division is not theirs"
    upright = False
    """Whether only upright people are taken."""

    def _published(self, folder: Path) -> Mapping[Path, str]:
        path = folder / self.archive
        return {path: "8fe435cf392c63768230ccf46904091d"} if path.is_file() else {}

    def _opened(self, folder: Path) -> Reader:
        path = folder / self.archive
        return ZipReader(path, LIST, remedy=self.anew(path))

    def _people(self, reader: Reader) -> PersonImages:
        paths, joints, upright = read_joints(reader.text(LIST))
        _check_paths(self.name, paths, reader)
        sides = torch.tensor(SIDES).expand(len(paths), 2)
        check_joints(self.name, paths, LEEDS, joints, sides)
        kept = upright if self.upright else torch.ones(len(paths), dtype=torch.bool)
        paths = [path for path, one in zip(paths, kept.tolist(), strict=True) if one]
        joints = joints[kept]
        is_test = torch.tensor([path.startswith(TEST) for path in paths])
        places = torch.arange(len(paths))
        parts = {TRAIN: places[~is_test], TEST: places[is_test]}
        require_parts(self.name, parts)
        numbers = [int(NAME.fullmatch(path)[1]) for path in paths]  # type: ignore[index]
        wide, high = SIDES
        box = (MARGIN * wide, MARGIN * high, wide * 5 / 6, high * 5 / 6)
        return PersonImages(
            self.name,
            digest_of_people(joints, paths),
            tuple(paths),
            reader,
            LEEDS,
            joints,
            torch.tensor(box).expand(len(paths), 4),
            torsos(joints),
            MASK * extents(joints)[:, 2:].prod(1),
            torch.tensor(numbers).sub(1) // SERIES,
            parts,
        )


@POSES.register("lspet-upright")
class LeedsUpright(LeedsSubset):
    """2,315 of them, whose hips are below their necks, and ankles below the hips."""

    name = "lspet-upright"
    expected = (2_033, 282)
    digest = "cc9bf21c6cd51d6f0c90e4b7e7f0c41ddd3ab535ae50f07d42b3ae400ce48382"
    note = "2,315 of 10,000 people, upright ones, cut to 120 x 160 pixels"
    upright = True


def read_joints(text: str) -> tuple[list[str], Tensor, Tensor]:
    """Return paths, joints [N, J, 3] in pixels, and who is upright [N], of a list.

    Raises:
        DataError: if a column is missing or more, or a value is no number.
    """
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    each = [f"{name}_{part}" for name in LEEDS.joints for part in "xyv"]
    expected = ["image", "upright", *each]
    if header != expected:
        wrong = [name for name in header if name not in expected]
        lacking = [name for name in expected if name not in header]
        raise DataError(
            f"{LIST} must have the columns image, upright and x, y, v of "
            f"{len(LEEDS.joints)} joints in their order, got {len(header)} columns"
            + (f", unknown {wrong[0]}" if wrong else "")
            + (f", without {lacking[0]}" if lacking else "")
        )
    paths: list[str] = []
    numbers: list[list[float]] = []
    for line, row in enumerate(rows, start=2):
        try:
            if len(row) != len(expected):
                raise ValueError(f"{len(row)} values instead of {len(expected)}")
            numbers.append([float(value) for value in row[1:]])
        except ValueError as error:
            raise DataError(f"line {line} of {LIST} is malformed: {error}") from error
        paths.append(row[0])
    if not paths:
        raise DataError(f"{LIST} must list a person, got none")
    values = torch.tensor(numbers)
    return paths, values[:, 1:].unflatten(1, (-1, 3)), values[:, 0] == 1


def _check_paths(label: str, paths: list[str], reader: Reader) -> None:
    sizes = reader.sizes
    refuse(label, "oddly named images", [p for p in paths if not NAME.fullmatch(p)])
    refuse(label, "images of its list missing", [p for p in paths if p not in sizes])
    seen: set[str] = set()
    twice = [path for path in paths if path in seen or seen.add(path)]  # type: ignore[func-returns-value]
    refuse(label, "images listed twice", twice)
