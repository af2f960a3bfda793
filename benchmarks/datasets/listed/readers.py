"""Where the bytes of listed images are: in a folder, or in a zip file."""

import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.datasets.listed.lists import PARTS
from metricopt.errors import DataError


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
    """A zip file, opened once by every thread and process that reads it.

    Args:
        path: the file.

    Raises:
        DataError: if it is no zip file, or holds no lists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = threading.local()
        lists = [name for name in self._archive.namelist() if name.endswith(PARTS[0])]
        if not lists:
            raise DataError(f"{path} must hold {PARTS[0]}, got none")
        self._inner = min(lists, key=len).removesuffix(PARTS[0])

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but open files, for other processes."""
        return {"_path": self._path, "_inner": self._inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over everything; files are opened when they are read."""
        self.__dict__.update(state, _open=threading.local())

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
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{path} of {self._path} cannot be read: {error}"
            ) from error

    @property
    def _archive(self) -> zipfile.ZipFile:
        if not hasattr(self._open, "archive"):
            try:
                self._open.archive = zipfile.ZipFile(self._path)
            except (OSError, zipfile.BadZipFile) as error:
                raise DataError(
                    f"{self._path} cannot be read ({error}); get it again"
                ) from error
        found: zipfile.ZipFile = self._open.archive
        return found
