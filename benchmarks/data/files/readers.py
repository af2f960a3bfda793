"""Where the bytes of images are: in a folder, or in archives that stay packed."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.data.files.refusal import shown
from benchmarks.data.files.walk import files_below
from metricopt.errors import DataError

LARGEST = 1 << 27
"""Bytes of a file. No image, list or annotation has more."""
AGAIN = "get it again"


class Reader(ABC):
    """Files by their path in a data set.

    Its errors name the file and what is wrong. Whoever shows one adds the remedy.

    Attributes:
        remedy: what to do where a file is damaged.
    """

    remedy: str = AGAIN

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            DataError: if it cannot be read, or is too large.
        """

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return shown(path)

    def text(self, path: str) -> str:
        """Return the content of a text file.

        Raises:
            DataError: if it cannot be read, or is not UTF-8.
        """
        content = self.read(path)
        try:
            # Some editors begin a file with a mark of the encoding, which is no text.
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{self.where(path)} must be text in UTF-8, got the byte "
                f"{content[error.start]:#04x} in line {line}"
            ) from error


class FolderReader(Reader):
    """An unpacked folder.

    Args:
        folder: folder of the data set.
        remedy: what to do where a file is damaged.
    """

    def __init__(self, folder: Path, *, remedy: str = AGAIN) -> None:
        self._folder, self.remedy = folder, remedy

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of every file, by its path; see `files_below`."""
        return files_below(self._folder)

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return shown(str(self._folder / path))

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        try:
            with (self._folder / path).open("rb") as file:
                check_size(os.fstat(file.fileno()).st_size, self.where(path))
                return file.read()
        except (OSError, ValueError) as error:
            raise DataError(f"{self.where(path)} cannot be read: {error}") from error


class JoinedReader(Reader):
    """Several readers; of equal paths the first one's file counts.

    Args:
        readers: at least one; the first one's remedy is that of all.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = tuple(readers)
        self.remedy = readers[0].remedy
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

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        if path not in self._owner:
            return shown(path)
        return self._readers[self._owner[path]].where(path)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        if path not in self._owner:
            raise DataError(f"{shown(path)} is in none of the archives")
        return self._readers[self._owner[path]].read(path)


def check_size(size: int, where: str) -> None:
    """Check how many bytes a file has, or claims to have, before it is read.

    Raises:
        DataError: if they are more than `LARGEST`.
    """
    if size > LARGEST:
        raise DataError(f"{where} has {size:,} bytes, expected {LARGEST:,} or less")
