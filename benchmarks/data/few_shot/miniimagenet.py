"""miniImageNet: 100 classes of ImageNet with 600 images each, by published lists.

The images are those of the user's own copy of ImageNet; see the data set `imagenet`.

Source: Vinyals et al., NeurIPS 2016; lists of Ravi and Larochelle, ICLR 2017, whose
numbers yaoyao-liu/mini-imagenet-tools, mini_imagenet_generator.py, traces to ImageNet.
Differs: images are stretched to 84 pixels by Pillow's bicubic filter, as all are here.
"""

import csv
import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar

from benchmarks.data.few_shot.contract import FEW_SHOT, FewShotSource, Members
from benchmarks.data.files.download import download, require_md5
from benchmarks.data.files.readers import FolderReader, Reader, files_below, refuse
from benchmarks.data.folders.contract import SUFFIXES, TRAIN
from benchmarks.data.folders.imagenet import ImageNet
from metricopt.errors import DataError

PAGE = (
    "https://raw.githubusercontent.com/twitter-research/meta-learning-lstm/master/data/"
    "miniImagenet"
)
HEADER = ["filename", "label"]
LISTED = re.compile(r"(n\d{8})(\d{8})\.jpg")
"""A file of the lists: the class, and which of its images in ImageNet, from 1 on."""
NUMBERED = re.compile(r"(n\d{8})_(\d+)\.JPEG")
"""A training image of ImageNet; the images of a class are counted in this order."""

Lists = Mapping[str, Mapping[str, list[int]]]
"""Which images of every class are taken, from 1 on, by part."""


@FEW_SHOT.register("miniimagenet")
class MiniImageNet(FewShotSource):
    """60,000 images: 64, 16 and 20 classes.

    Attributes:
        lists: md5 of the published lists, by part.
        each: images of every class.
    """

    name = "miniimagenet"
    folder = "miniimagenet"
    expected = (60_000, 64, 16, 20)
    side = 84
    each: ClassVar[int] = 600
    lists: ClassVar[Mapping[str, str]] = {
        "train": "9525e1538f67719f18f1936bf8d0782d",
        "val": "ce315ce99b41fbf84fa6acd69315d918",
        "test": "5b89df877c6cbe5d291e43118a2a9591",
    }

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Download the lists; the user has to bring ImageNet."""
        fresh = [
            download([f"{PAGE}/{path.name}"], path, md5=md5, progress=progress)
            for path, md5 in self._paths(folder).items()
            if not path.is_file()
        ]
        if not (_photographs(folder) / TRAIN).is_dir():
            fresh += ImageNet().fetch(folder.parent, progress=progress)
        return fresh

    def _published(self, folder: Path) -> Mapping[Path, str]:
        paths = self._paths(folder)
        return {path: md5 for path, md5 in paths.items() if path.is_file()}

    def _is_there(self, folder: Path) -> bool:
        lists = all(path.is_file() for path in self._paths(folder))
        return lists and (_photographs(folder) / TRAIN).is_dir()

    def _reader(self, folder: Path) -> Reader:
        paths, photographs = self._paths(folder), _photographs(folder)
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise DataError(
                f"{self.name} needs {', '.join(missing)} in {folder}; run "
                f"`./reproduce.sh data fetch {self.name}`"
            )
        for path, md5 in paths.items():
            require_md5(path, md5, self.anew(path))
        if not (photographs / TRAIN).is_dir():
            raise DataError(
                f"{self.name} needs the training images of ImageNet in "
                f"{photographs / TRAIN}; run `./reproduce.sh data fetch imagenet`, "
                "which says how to get them"
            )
        texts = FolderReader(folder)
        lists = {part: _read_list(texts, f"{part}.csv") for part in self.lists}
        remedy = f"put the official training images of ImageNet into {photographs}"
        return _ListedClasses(photographs, lists, remedy=remedy)

    def _paths(self, folder: Path) -> dict[Path, str]:
        return {folder / f"{part}.csv": md5 for part, md5 in self.lists.items()}

    def _members(self, reader: Reader) -> tuple[Members, Mapping[str, str]]:
        assert isinstance(reader, _ListedClasses)
        lists = reader.lists
        parts = {name: part for part, own in lists.items() for name in own}
        counts = Counter(name for own in lists.values() for name in own)
        both = sorted(name for name, count in counts.items() if count > 1)
        refuse(self.name, "classes in more than one list", both)
        wanted = {name: each for own in lists.values() for name, each in own.items()}
        others = [
            f"{k}: {len(own)}" for k, own in wanted.items() if len(own) != self.each
        ]
        refuse(self.name, f"classes not listed with {self.each} images", others)
        there = reader.by_class()
        short = [
            f"{name}: image {max(own):,} of {len(there[name]):,}"
            for name, own in wanted.items()
            if max(own) > len(there[name])
        ]
        refuse(self.name, "classes with fewer images than the lists need", short)
        reader.require_all()
        members = {
            name: [there[name][place - 1] for place in own]
            for name, own in wanted.items()
        }
        return members, parts


class _ListedClasses(FolderReader):
    """Reads ImageNet: of other than the listed classes, it only counts the images.

    Args:
        folder: folder of ImageNet.
        lists: which images are taken.
        remedy: what to do where a file is damaged.

    Raises:
        DataError: if a class has no folder.
    """

    def __init__(self, folder: Path, lists: Lists, *, remedy: str) -> None:
        super().__init__(folder, remedy=remedy)
        self.lists, self._images = lists, folder / TRAIN
        self._classes = sorted({name for own in lists.values() for name in own})
        absent = [name for name in self._classes if not (self._images / name).is_dir()]
        try:
            refuse("miniimagenet", f"listed classes not in {self._images}", absent)
        except DataError as error:
            raise DataError(f"{error}; {remedy}") from error

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file of the listed classes, by its path."""
        return {
            f"{TRAIN}/{name}/{file}": size
            for name in self._classes
            for file, size in files_below(self._images / name).items()
        }

    def require_all(self) -> None:
        """Raise DataError if an image of ImageNet is missing, or there are more.

        The lists count the images of a class: where one is missing, the next one would
        stand in the place of every later one.
        """
        folders = [each.path for each in os.scandir(self._images) if each.is_dir()]
        files = chain.from_iterable(map(os.listdir, folders))
        found = sum(name.endswith(".JPEG") for name in files)
        expected, *_ = ImageNet.expected
        if found != expected:
            raise DataError(
                f"{self._images} must have {expected:,} images, got {found:,}; the "
                "lists of miniimagenet count them, so put the official ones there"
            )

    def by_class(self) -> dict[str, list[str]]:
        """Return the images of every class in the order of their numbers.

        Raises:
            DataError: if an image is not called as in ImageNet.
        """
        found: dict[str, dict[int, str]] = {name: {} for name in self._classes}
        others = []
        for path in self.sizes:
            _, name, file = path.split("/", 2)
            number = NUMBERED.fullmatch(file)
            if number and number[1] == name:
                found[name][int(number[2])] = path
            elif file.lower().endswith(SUFFIXES):
                others.append(path)
        refuse("miniimagenet", "images not called WNID_NUMBER.JPEG", sorted(others))
        return {name: [own[k] for k in sorted(own)] for name, own in found.items()}


def _photographs(folder: Path) -> Path:
    """Return the folder of ImageNet, which stands beside that of the lists."""
    return folder.parent / ImageNet.folder


def _read_list(reader: Reader, name: str) -> dict[str, list[int]]:
    """Return which images of every class a list names, from 1 on.

    Raises:
        DataError: if a line is not a class and an image of it.
    """
    header, *rows = csv.reader(reader.text(name).splitlines()) or [[]]
    if header != HEADER:
        raise DataError(f"{name} must begin with {','.join(HEADER)}, got {header}")
    found: dict[str, list[int]] = defaultdict(list)
    for line, row in enumerate(rows, 2):
        match = LISTED.fullmatch(row[0]) if len(row) == 2 else None
        if match is None or match[1] != row[1] or int(match[2]) < 1:
            raise DataError(
                f"line {line} of {name} must name an image and its class, such as "
                f"n0153282900000005.jpg,n01532829; got {','.join(row)[:60]!r}"
            )
        found[row[1]].append(int(match[2]))
    return dict(found)
