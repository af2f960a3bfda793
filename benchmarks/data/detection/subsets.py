"""Small data sets in the layout of PASCAL VOC, for runs on a CPU and checks."""

from pathlib import Path

from benchmarks.data.detection.contract import DETECTION, VOC_CLASSES, DetectionSource
from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import SubsetSource


class DevkitSubset(SubsetSource, DetectionSource):
    """A zip file with a devkit."""

    def _opened(self, folder: Path) -> Reader:
        path, (year, name) = folder / self.archive, self.lists["train"][0]
        marker = f"{year}/ImageSets/Main/{name}.txt"
        return ZipReader(path, marker, remedy=self.anew(path))


@DETECTION.register("bccd-voc-subset")
class BCCDSubset(DevkitSubset):
    """Blood cells: 205 images train, 87 of its validation images are the test.

    Source: BCCD Dataset, MIT licence; 256 x 192 pixels instead of 640 x 480.
    """

    name = "bccd-voc-subset"
    folder = "bccd_voc_subset"
    archive = "bccd_voc_subset.zip"
    expected = (205, 87)
    digest = "f81e06c848918c05be4c75f346aa58af805e0a89fcda9da0f0ea7e20da71e065"
    classes = ("Platelets", "RBC", "WBC")
    lists = {"train": (("BCCD", "train"),), "test": (("BCCD", "val"),)}  # noqa: RUF012
    note = "292 images of BCCD at 256 x 192 pixels"


@DETECTION.register("voc2007-subset")
class VOC2007Subset(DevkitSubset):
    """92 images of PASCAL VOC 2007: too few to train on, real files to read."""

    name = "voc2007-subset"
    folder = "voc2007_subset"
    archive = "voc2007_subset.zip"
    expected = (68, 24)
    digest = "0ecec1b08ca719aa06a239c4da0e003cd161572f1789cb62ede98b1b5331bdca"
    classes = VOC_CLASSES
    lists = {  # noqa: RUF012
        "train": (("VOC2007", "trainval"),),
        "test": (("VOC2007", "test"),),
    }
    note = "92 images of PASCAL VOC 2007"
