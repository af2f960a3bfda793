"""Files in an archive that stays packed: nothing is written, no link is followed."""

import os
import tarfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data.files.readers import AGAIN, Reader, check_size, refuse, shown, told
from metricopt.errors import DataError

COMPRESSION = {zipfile.ZIP_STORED: "none", zipfile.ZIP_DEFLATED: "deflate"}
"""How files of a zip file may be compressed: what unpacks bit by bit."""


class ZipReader(Reader):
    """A zip file, opened once by every process that reads it; its threads share it.

    Args:
        path: the file.
        marker: a file in the data set, whose folder paths are relative to; or that
            folder itself, with a slash at its end.
        remedy: what to do where it is damaged.

    Raises:
        DataError: if it is no zip file, holds a name twice, or not the marker.
    """

    def __init__(self, path: Path, marker: str, *, remedy: str = AGAIN) -> None:
        self._path, self.remedy = path, remedy
        self._opened: tuple[int, zipfile.ZipFile] | None = None
        names = self._archive.namelist()
        _refuse_twice(path, names, remedy)
        inner = _root(names, marker)
        if inner is None:
            raise DataError(f"{path} must hold {marker}, got none; {remedy}")
        self._inner = inner

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

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return f"{shown(path)} of {self._path}"

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        archive, where = self._archive, self.where(path)
        try:
            member = archive.getinfo(self._inner + path)
        except KeyError as error:
            raise DataError(f"{where} cannot be read: there is none") from error
        check_size(member.file_size, where)
        if member.compress_type not in COMPRESSION:
            raise DataError(
                f"{where} is compressed by method {member.compress_type}, expected "
                + " or ".join(COMPRESSION.values())
            )
        try:
            with archive.open(member) as file:
                # What it claims and no more: a read of all would unpack all it holds.
                content = file.read(member.file_size)
        except Exception as error:  # zipfile raises many kinds
            raise DataError(f"{where} cannot be read: {told(error)}") from error
        _check_length(content, member.file_size, where)
        return content

    @property
    def _archive(self) -> zipfile.ZipFile:
        # A process that was forked would share the place in the file.
        if self._opened is None or self._opened[0] != os.getpid():
            try:
                self._opened = os.getpid(), zipfile.ZipFile(self._path)
            except Exception as error:  # zipfile raises many kinds
                raise _unread(self._path, error, self.remedy) from error
        return self._opened[1]


def _root(names: Sequence[str], marker: str) -> str | None:
    """Return what the paths of a data set begin with; None without the marker."""
    if marker.endswith("/"):
        return marker if any(name.startswith(marker) for name in names) else None
    found = [name for name in names if name.endswith(marker)]
    return min(found, key=len).removesuffix(marker) if found else None


class TarReader(Reader):
    """A tar file that is not compressed; where its files lie is looked up once.

    Args:
        path: the file.
        root: what paths in it begin with, and those of the data set do not.
        remedy: what to do where it is damaged.

    Raises:
        DataError: if it is no such tar file, or holds a name twice.
    """

    def __init__(self, path: Path, root: str = "", *, remedy: str = AGAIN) -> None:
        self._path, self.remedy = path, remedy
        try:
            with tarfile.open(path, "r:") as archive:
                files = _plain_files(archive)
        except Exception as error:  # tarfile raises many kinds
            raise _unread(path, error, remedy) from error
        names = [each.name.removeprefix(root) for each in files]
        _refuse_twice(path, names, remedy)
        self._places = {
            name: (each.offset_data, each.size)
            for name, each in zip(names, files, strict=True)
        }

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""
        return {name: size for name, (_, size) in self._places.items()}

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return f"{shown(path)} of {self._path}"

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        if path not in self._places:
            raise DataError(f"{self._path} must hold {shown(path)}, got none")
        start, size = self._places[path]
        check_size(size, self.where(path))
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                content = file.read(size)
        except (OSError, ValueError) as error:
            raise DataError(f"{self._path} cannot be read: {error}") from error
        _check_length(content, size, self.where(path))
        return content


def _plain_files(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return the files of a tar file that lie in it as they are; links are left out.

    Raises:
        ValueError: if a file does not come after the one before it, as where a size is
            negative: it would be met for ever. Or if its gaps are not in the archive.
    """
    found, last = [], -1
    for each in archive:
        if each.offset <= last or each.size < 0:
            raise ValueError(f"it leads back at {shown(each.name)}")
        if each.issparse():
            raise ValueError(f"{shown(each.name)} is stored without its gaps")
        last = each.offset
        if each.isfile():
            found.append(each)
    return found


def _check_length(content: bytes, size: int, where: str) -> None:
    if len(content) < size:
        raise DataError(
            f"{where} is cut off: expected {size:,} bytes, got {len(content):,}"
        )


def _refuse_twice(path: Path, names: Sequence[str], remedy: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    try:
        refuse(str(path), "names that are there twice", twice)
    except DataError as error:
        raise DataError(f"{error}; {remedy}") from error


def _unread(path: Path, error: Exception, remedy: str) -> DataError:
    return DataError(f"{path} cannot be read ({told(error)}); {remedy}")
