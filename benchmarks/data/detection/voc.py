"""PASCAL VOC 2007, alone or with the training images of 2012, as the papers test on it.

Source: Everingham et al., IJCV 2010. Train on trainval, test on test of 2007.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data.detection.contract import DETECTION, VOC_CLASSES, DetectionSource
from benchmarks.data.files.archives import TarReader
from benchmarks.data.files.download import download
from benchmarks.data.files.readers import FolderReader, JoinedReader, Reader
from metricopt.errors import DataError

DEVKIT, MIRROR = "VOCdevkit", "https://pjreddie.com/media/files/"
TEST = (("VOC2007", "test"),)


@DETECTION.register("voc07")
class VOC07(DetectionSource):
    """5,011 images of trainval train, 4,952 of test are the test; 20 classes.

    The archives, which stay packed, or the `VOCdevkit` they unpack to.
    """

    name = "voc07"
    folder = "voc"
    expected = (5_011, 4_952)
    classes = VOC_CLASSES
    lists: Mapping[str, Sequence[tuple[str, str]]] = {
        "train": (("VOC2007", "trainval"),),
        "test": TEST,
    }
    archives: tuple[str, ...] = ("2007", "2007-test")
    """Names of the archives in torchvision's list."""

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        found = []
        for each in map(_archive, self.archives):
            path = folder / each["filename"]
            if not path.is_file():
                urls = (each["url"], MIRROR + each["filename"])
                found.append(download(urls, path, md5=each["md5"], progress=progress))
        return found

    def _published(self, folder: Path) -> Mapping[Path, str]:
        packed = self.archives if self._unpacked(folder) is None else ()
        return {
            folder / each["filename"]: each["md5"] for each in map(_archive, packed)
        }

    def _is_there(self, folder: Path) -> bool:
        if self._unpacked(folder) is not None:
            return True
        return all((folder / _archive(a)["filename"]).is_file() for a in self.archives)

    def _unpacked(self, folder: Path) -> Path | None:
        devkit = folder / DEVKIT
        lists = [path for part in self.lists.values() for path in part]
        there = all(
            (devkit / year / "ImageSets" / "Main" / f"{name}.txt").is_file()
            for year, name in lists
        )
        return devkit if there else None

    def _reader(self, folder: Path) -> Reader:
        devkit = self._unpacked(folder)
        if devkit is not None:
            return FolderReader(devkit, remedy=self.anew(devkit))
        paths = [folder / _archive(each)["filename"] for each in self.archives]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise DataError(
                f"{self.name} needs {', '.join(missing)}, or the folder {DEVKIT} they "
                f"unpack to, in {folder}; run `./reproduce.sh data fetch {self.name}`"
            )
        remedy, root = self.anew(*paths), f"{DEVKIT}/"
        return JoinedReader([TarReader(path, root, remedy=remedy) for path in paths])


@DETECTION.register("voc07+12")
class VOC0712(VOC07):
    """16,551 images of both trainvals train, the test is that of 2007."""

    name = "voc07+12"
    expected = (16_551, 4_952)
    lists: Mapping[str, Sequence[tuple[str, str]]] = {
        "train": (("VOC2007", "trainval"), ("VOC2012", "trainval")),
        "test": TEST,
    }
    archives = ("2007", "2007-test", "2012")


def _archive(name: str) -> Any:
    """Return address, file and md5 of an archive, as torchvision knows them."""
    # Not above: every look-up of a data set imports this file.
    from torchvision.datasets import voc

    return voc.DATASET_YEAR_DICT[name]
