"""COCO key points: people of the training images of 2017, and of the validation images.

Source: Lin et al., ECCV 2014. People are cut out by their own boxes, as SimpleBaseline
does for its comparisons with ground truth.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.download import download
from benchmarks.data.files.readers import FolderReader, JoinedReader, Reader, refuse
from benchmarks.data.poses.contract import (
    POSES,
    TEST,
    TRAIN,
    PersonImages,
    PoseSource,
    Skeleton,
    check_joints,
    digest_of_people,
    require_parts,
)
from metricopt.errors import DataError

PAGE = "http://images.cocodataset.org"
YEARS = {TRAIN: "train2017", TEST: "val2017"}
"""Folder of the images of every part."""
PADDING = 1.25
ASPECT = 3 / 4
"""Width over height of the box that a network sees."""
COCO = Skeleton(
    (
        *("nose", "left_eye", "right_eye", "left_ear", "right_ear"),
        *("left_shoulder", "right_shoulder", "left_elbow", "right_elbow"),
        *("left_wrist", "right_wrist", "left_hip", "right_hip"),
        *("left_knee", "right_knee", "left_ankle", "right_ankle"),
    ),
    tuple((left, left + 1) for left in range(1, 17, 2)),
    (
        *((15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6)),
        *((5, 7), (6, 8), (7, 9), (8, 10), (1, 2), (0, 1), (0, 2), (1, 3), (2, 4)),
    ),
)


@dataclass(frozen=True)
class _Person:
    """A person of an annotation file."""

    path: str
    image: int
    joints: list[list[float]]
    box: list[float]
    area: float
    sides: tuple[float, float]


@POSES.register("coco-keypoints")
class CocoKeypoints(PoseSource):
    """149,813 people to train on and 6,352 of the test, with 17 joints.

    The archives, which stay packed, or the folders they unpack to.

    Attributes:
        archives: md5 of the archives, by path on the official page.
    """

    name = "coco-keypoints"
    folder = "coco"
    expected = (149_813, 6_352)
    skeleton = COCO
    archives: ClassVar[Mapping[str, str]] = {
        "annotations/annotations_trainval2017.zip": "f4bbac642086de4f52a3fdda2de5fa2c",
        "zips/train2017.zip": "cced6f7f71b7629ddf16f17bbcfab6b2",
        "zips/val2017.zip": "442b8da7639aecaf257c1dceb8ba8c80",
    }

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        return [
            download(
                [f"{PAGE}/{name}"], folder / Path(name).name, md5=md5, progress=progress
            )
            for name, md5 in self.archives.items()
            if not (folder / Path(name).name).is_file()
        ]

    def _published(self, folder: Path) -> Mapping[Path, str]:
        paths = {folder / Path(name).name: md5 for name, md5 in self.archives.items()}
        return {path: md5 for path, md5 in paths.items() if path.is_file()}

    def _is_there(self, folder: Path) -> bool:
        return _unpacked(folder) or len(self._published(folder)) == len(self.archives)

    def _reader(self, folder: Path) -> Reader:
        if _unpacked(folder):
            return FolderReader(folder, remedy=self.anew(folder))
        paths = [folder / Path(name).name for name in self.archives]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise DataError(
                f"{self.name} needs {', '.join(missing)}, or the folders annotations, "
                f"train2017 and val2017, in {folder}; run `./reproduce.sh data fetch "
                f"{self.name}`"
            )
        remedy = self.anew(*paths)
        markers = ("annotations/", *(f"{year}/" for year in YEARS.values()))
        return JoinedReader(
            [
                _Below(ZipReader(path, marker, remedy=remedy), marker)
                for path, marker in zip(paths, markers, strict=True)
            ]
        )

    def _people(self, reader: Reader) -> PersonImages:
        found = {part: read_people(reader, part) for part in YEARS}
        people = [person for own in found.values() for person in own]
        starts = torch.tensor([len(own) for own in found.values()]).cumsum(0)
        places = torch.arange(len(people)).tensor_split(starts[:-1])
        parts = dict(zip(found, places, strict=True))
        require_parts(self.name, parts)
        paths = tuple(person.path for person in people)
        joints = torch.tensor([person.joints for person in people])
        sides = torch.tensor([person.sides for person in people])
        check_joints(self.name, paths, COCO, joints, sides)
        given = torch.tensor([person.box for person in people])
        return PersonImages(
            self.name,
            digest_of_people(joints, paths),
            paths,
            reader,
            COCO,
            joints,
            widened(given),
            given[:, 2:].amax(1),
            torch.tensor([person.area for person in people]),
            torch.tensor([person.image for person in people]),
            parts,
        )


def _unpacked(folder: Path) -> bool:
    lists = [folder / _annotations(part) for part in YEARS]
    images = [folder / year for year in YEARS.values()]
    return all(p.is_file() for p in lists) and all(p.is_dir() for p in images)


def _annotations(part: str) -> str:
    return f"annotations/person_keypoints_{YEARS[part]}.json"


class _Below(Reader):
    """The files of an archive, under the folder that unpacking would make."""

    def __init__(self, reader: Reader, folder: str) -> None:
        self._reader, self._folder, self.remedy = reader, folder, reader.remedy

    @property
    def sizes(self) -> Mapping[str, int]:
        return {f"{self._folder}{p}": size for p, size in self._reader.sizes.items()}

    def where(self, path: str) -> str:
        return self._reader.where(path.removeprefix(self._folder))

    def read(self, path: str) -> bytes:
        return self._reader.read(path.removeprefix(self._folder))


def read_people(reader: Reader, part: str) -> list[_Person]:
    """Return the people of a part that have a labelled joint and are no crowd.

    Raises:
        DataError: if the annotations are malformed, or an image is missing.
    """
    name = _annotations(part)
    try:
        content = json.loads(reader.text(name))
        images = {image["id"]: image for image in content["images"]}
        people = [
            _person(one, images[one["image_id"]], part)
            for one in content["annotations"]
            if not one.get("iscrowd") and one.get("num_keypoints", 0) > 0
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{name} holds no key points of people: {type(error).__name__} {error}"
        ) from error
    sizes = reader.sizes
    lacking = sorted({one.path for one in people} - set(sizes))
    refuse("coco-keypoints", "images of its annotations missing", lacking)
    return people


def _person(one: Mapping[str, Any], image: Mapping[str, Any], part: str) -> _Person:
    numbers = [float(value) for value in one["keypoints"]]
    if len(numbers) != 3 * len(COCO.joints):
        raise ValueError(f"{len(numbers)} numbers instead of {3 * len(COCO.joints)}")
    joints = [
        [x, y, float(seen > 0)]
        for x, y, seen in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    ]
    return _Person(
        f"{YEARS[part]}/{image['file_name']}",
        int(image["id"]),
        joints,
        [float(side) for side in one["bbox"]],
        float(one["area"]),
        (float(image["width"]), float(image["height"])),
    )


def widened(boxes: Tensor) -> Tensor:
    """Return boxes [N, 4] with the aspect of a network, a quarter larger."""
    middle = boxes[:, :2] + boxes[:, 2:] / 2
    wide = torch.maximum(boxes[:, 2], ASPECT * boxes[:, 3])
    sides = PADDING * torch.stack([wide, wide / ASPECT], 1)
    return torch.cat([middle - sides / 2, sides], 1)
