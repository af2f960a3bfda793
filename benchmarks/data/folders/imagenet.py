"""ImageNet of the challenge of 2012: 1,281,167 and 50,000 photographs, 1,000 classes.

Source: Russakovsky et al., IJCV 2015. Its host asks for an account.
"""

import shutil
from pathlib import Path

from benchmarks.data.files.readers import FolderReader, Reader
from benchmarks.data.folders.contract import FOLDERS, TEST, TRAIN, FolderSource
from metricopt.errors import DataError

PAGE = "https://image-net.org/challenges/LSVRC/2012/2012-downloads.php"
GIGABYTES = 300
"""Room that the archives and what they unpack to take together."""


@FOLDERS.register("imagenet")
class ImageNet(FolderSource):
    """The folders `train` and `val`, or the official archives they unpack from."""

    name = "imagenet"
    folder = "imagenet"
    expected = (1_281_167, 50_000, 1_000)

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Check and unpack the official archives, which the user has to bring."""
        half = [name for name in (TRAIN, TEST) if (folder / name).exists()]
        if half:
            raise DataError(
                f"imagenet needs the folders {TRAIN} and {TEST} in {folder}, got "
                f"{half[0]} alone; put the other one beside it, or move it away to "
                "unpack the archives"
            )
        # Not above: a look-up of any data set imports this file.
        from torchvision.datasets import imagenet

        missing = [
            name
            for name, _ in imagenet.ARCHIVE_META.values()
            if not (folder / name).is_file()
        ]
        if missing:
            raise DataError(_steps(folder, missing))
        _unpack(folder)
        return [folder / TRAIN, folder / TEST]

    def _is_there(self, folder: Path) -> bool:
        return (folder / TRAIN).is_dir() and (folder / TEST).is_dir()

    def _reader(self, folder: Path) -> Reader:
        if not self._is_there(folder):
            raise DataError(
                f"imagenet needs the folders {TRAIN} and {TEST} in {folder}; run "
                "`./reproduce.sh data fetch imagenet`, which says how to get them"
            )
        parts = [folder / name for name in (TRAIN, TEST)]
        remedy = f"put the right files there, or {self.anew(*parts)}"
        return FolderReader(folder, remedy=remedy)


def _unpack(folder: Path) -> None:
    """Check the archives and unpack them; the folders appear when both are complete.

    Raises:
        DataError: if an archive is another one, or the disk is full.
    """
    from torchvision.datasets import imagenet

    for name in (TRAIN, TEST):  # of a fetch that was cut off
        shutil.rmtree(folder / _part(name), ignore_errors=True)
    try:
        # Each is checked by its md5 first.
        imagenet.parse_devkit_archive(folder)
        imagenet.parse_train_archive(folder, folder=_part(TRAIN))
        imagenet.parse_val_archive(folder, folder=_part(TEST))
        for name in (TRAIN, TEST):
            (folder / _part(name)).rename(folder / name)
    except OSError as error:
        raise DataError(f"imagenet cannot be unpacked: {error}") from error
    except Exception as error:  # torchvision raises many kinds
        raise DataError(
            f"imagenet cannot be unpacked: {error}; get the archive again from {PAGE}"
        ) from error


def _part(name: str) -> str:
    """Return where a folder is unpacked, so that a half unpacked one never counts."""
    return f"{name}.part"


def _steps(folder: Path, missing: list[str]) -> str:
    return (
        f"imagenet needs {', '.join(missing)} in {folder}: make an account at {PAGE}, "
        "agree to its terms, download the training images (task 1 and 2), the "
        "validation images and the development kit (task 1 and 2) of 2012 into that "
        f"folder, and run this again; it takes {GIGABYTES} GB. Folders {TRAIN}/WNID "
        f"and {TEST}/WNID that are unpacked already will do, too"
    )
