"""Ten classes of ImageNet, those of Imagenette, for runs on a CPU.

A network pre-trained on ImageNet must not be judged on it: most of its images, those
of the test included, are training images of ImageNet.
"""

from pathlib import Path

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.readers import Reader
from benchmarks.data.folders.contract import FOLDERS, FolderSource
from benchmarks.data.read_source import SubsetSource


@FOLDERS.register("imagenette-subset")
class ImagenetteSubset(SubsetSource, FolderSource):
    """1,000 images train, 250 test, all of 96 x 96 pixels."""

    name = "imagenette-subset"
    folder = "imagenet_subset"
    archive = "imagenet_subset.zip"
    expected = (1_000, 250, 10)
    digest = "887e3be0daabb7289af3c1479adb01e746c22cbfb8d82f474509d14449a70c35"
    note = "125 images each of ten classes of ImageNet, squashed to 96 x 96 pixels"

    def _opened(self, folder: Path) -> Reader:
        path = folder / self.archive
        return ZipReader(path, "classes.csv", remedy=self.anew(path))
