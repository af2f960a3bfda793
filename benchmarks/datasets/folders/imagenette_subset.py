"""Ten classes of ImageNet, those of Imagenette, for runs on a CPU.

A network pre-trained on ImageNet must not be judged on it: most of its images, those
of the test included, are training images of ImageNet.
"""

from pathlib import Path

from benchmarks.datasets.files.readers import Reader, ZipReader
from benchmarks.datasets.folders.contract import FOLDERS, FolderSource
from metricopt.errors import DataError

ARCHIVE = "imagenet_subset.zip"


@FOLDERS.register("imagenette-subset")
class ImagenetteSubset(FolderSource):
    """1,000 images train, 250 test, all of 96 x 96 pixels."""

    name = "imagenette-subset"
    folder = "imagenet_subset"
    expected = (1_000, 250, 10)
    digest = "887e3be0daabb7289af3c1479adb01e746c22cbfb8d82f474509d14449a70c35"
    note = "125 images each of ten classes of ImageNet, squashed to 96 x 96 pixels"

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Return nothing if the file is there; it has no download.

        Raises:
            DataError: if it is missing.
        """
        self.load(root, offline=True)
        return []

    def _is_there(self, folder: Path) -> bool:
        return (folder / ARCHIVE).is_file()

    def _reader(self, folder: Path) -> Reader:
        path = folder / ARCHIVE
        if not path.is_file():
            raise DataError(
                f"{self.name} needs {ARCHIVE} in {folder}; it has no download, so copy "
                "the file there, or run tier smoke or paper"
            )
        return ZipReader(path, "classes.csv")
