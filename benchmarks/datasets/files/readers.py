"""Where the bytes of images are: in a folder, or in an archive that stays packed."""

import os
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metricopt.errors import DataError

BROKEN = (zipfile.BadZipFile, zlib.error)


class Reader(ABC):
    """Files by their path in a data set."""

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
        folder: of the data set.
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
        marker: a file in the data set, whose folder paths are relative to.

    Raises:
        DataError: if it is no zip file, or does not hold the marker.
    """

    def __init__(self, path: Path, marker: str) -> None:
        self._path = path
        self._opened: tuple[int, zipfile.ZipFile] | None = None
        found = [name for name in self._archive.namelist() if name.endswith(marker)]
        if not found:
            raise DataError(f"{path} must hold {marker}, got none")
        self._inner = min(found, key=len).removesuffix(marker)

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


class TarReader(Reader):
    """A tar file that is not compressed; where its files lie is looked up once.

    Args:
        path: the file.
        root: what paths in it begin with, and those of the data set do not.

    Raises:
        DataError: if it is no such tar file.
    """

    def __init__(self, path: Path, root: str = "") -> None:
        self._path = path
        try:
            with tarfile.open(path, "r:") as archive:
                self._places = {
                    each.name.removeprefix(root): (each.offset_data, each.size)
                    for each in archive
                    if each.isfile()
                }
        except (OSError, tarfile.TarError) as error:
            raise DataError(f"{path} cannot be read ({error}); get it again") from error

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""
        return {name: size for name, (_, size) in self._places.items()}

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        if path not in self._places:
            raise DataError(f"{self._path} must hold {path}, got none")
        start, size = self._places[path]
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                content = file.read(size)
        except OSError as error:
            raise DataError(f"{self._path} cannot be read: {error}") from error
        if len(content) < size:
            raise DataError(f"{path} of {self._path} is cut off; get the archive again")
        return content


class JoinedReader(Reader):
    """Several readers; of equal paths the first one's file counts.

    Args:
        readers: at least one.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = tuple(readers)
        self._owner = {
            path: place
            for place, reader in reversed(list(enumerate(self._readers)))
            for path in reader.sizes
        }

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""
        sizes = [reader.sizes for reader in self._readers]
        return {path: sizes[place][path] for path, place in self._owner.items()}

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        if path not in self._owner:
            raise DataError(f"{path} is in none of the archives")
        return self._readers[self._owner[path]].read(path)
