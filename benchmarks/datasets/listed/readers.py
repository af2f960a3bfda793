"""Where the bytes of listed images are: in a folder, or in a zip file."""

import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.datasets.listed.lists import PARTS
from metricopt.errors import DataError

BROKEN = (zipfile.BadZipFile, zlib.error)


class Reader(ABC):
    """Files by their path relative to the lists."""

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            DataError: if it cannot be read.
        """


class FolderReader(Reader):
    """An unpacked folder.

    Args:
        folder: which holds the lists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path; one look at every folder."""
        files = (path for path in self._folder.rglob("*") if path.is_file())
        return {
            path.relative_to(self._folder).as_posix(): path.stat().st_size
            for path in files
        }

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        try:
            return (self._folder / path).read_bytes()
        except OSError as error:
            raise DataError(f"{self._folder / path} cannot be read: {error}") from error


class ZipReader(Reader):
    """A zip file, opened once by every process that reads it; its threads share it.

    Args:
        path: the file.

    Raises:
        DataError: if it is no zip file, or holds no lists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: tuple[int, zipfile.ZipFile] | None = None
        lists = [name for name in self._archive.namelist() if name.endswith(PARTS[0])]
        if not lists:
            raise DataError(f"{path} must hold {PARTS[0]}, got none")
        self._inner = min(lists, key=len).removesuffix(PARTS[0])

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the open file, for other processes."""
        return self.__dict__ | {"_opened": None}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""
        found = self._archive.infolist()
        return {
            each.filename.removeprefix(self._inner): each.file_size
            for each in found
            if each.filename.startswith(self._inner) and not each.is_dir()
        }

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        try:
            return self._archive.read(self._inner + path)
        except (KeyError, OSError, RuntimeError, *BROKEN) as error:
            what = f"{path} of {self._path}"
            raise DataError(f"{what} cannot be read: {error}") from error

    @property
    def _archive(self) -> zipfile.ZipFile:
        # A process that was forked would share the place in the file.
        if self._opened is None or self._opened[0] != os.getpid():
            try:
                self._opened = os.getpid(), zipfile.ZipFile(self._path)
            except (OSError, *BROKEN) as error:
                raise DataError(
                    f"{self._path} cannot be read ({error}); get it again"
                ) from error
        return self._opened[1]
