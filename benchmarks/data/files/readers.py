"""Where the bytes of images are: in a folder, or in archives that stay packed."""

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from metricopt.errors import DataError

MORE = " and {} more"
NAMED = 3
"""Things that an error names before it counts."""
Identity = tuple[int, int]
"""Device and number of a folder, which no other one has."""
LARGEST = 1 << 27
"""Bytes of a file. No image, list or annotation has more."""
AGAIN = "get it again"


def named(things: Iterable[object], rest: str = ", ...") -> str:
    """Return the first of some things in one line, then `rest` with how many more."""
    texts = [shown(str(each)) for each in things]
    more = rest.format(len(texts) - NAMED) if len(texts) > NAMED else ""
    return ", ".join(texts[:NAMED]) + more


def refuse(label: str, what: str, wrong: Sequence[object]) -> None:
    """Raise a DataError that counts and names what is wrong, if anything is."""
    if wrong:
        raise DataError(
            f"{label} has {len(wrong)} {what} ({named(wrong)}), expected none"
        )


def shown(name: str) -> str:
    """Return a name in one line of text, whatever bytes it has."""
    return name if name.isprintable() else ascii(name)


def told(error: Exception) -> str:
    """Return what an exception says, in one line; its kind if it says nothing."""
    return shown(" ".join(str(error).split())) or type(error).__name__


def files_below(folder: Path) -> dict[str, int]:
    """Return the bytes of every file by its path in a folder; one look at each folder.

    Links are followed, as large data sets often lie on another disk. The path of a
    folder without any entry ends in a slash.

    Raises:
        DataError: if something cannot be read, is neither a file nor a folder, or is a
            folder that was met before: nothing is left out without a word.
    """
    found: dict[str, int] = {}
    met: dict[Identity, Path] = {}
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        _note(place, met)
        inside = "" if place == folder else f"{place.relative_to(folder).as_posix()}/"
        entries = dict(_entries(place))
        for name, status in entries.items():
            if stat.S_ISDIR(status.st_mode):
                waiting.append(place / name)
            else:
                found[inside + name] = status.st_size
        if inside and not entries:
            found[inside] = 0
    return found


def _note(place: Path, met: dict[Identity, Path]) -> None:
    """Note a folder.

    Raises:
        DataError: if it was met before, through a link.
    """
    try:
        status = place.stat()
    except OSError as error:
        raise _unreadable(place, error) from error
    first = met.setdefault((status.st_dev, status.st_ino), place)
    if first != place:
        one, other = (shown(str(each)) for each in (first, place))
        raise DataError(
            f"{one} and {other} are one folder, through a link: expected each one once"
        )


def _entries(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the name of every file and folder in a folder, with where a link leads."""
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                yield entry.name, _status(entry)
    except OSError as error:
        raise _unreadable(place, error) from error


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        status = entry.stat()
    except OSError as error:
        raise _unreadable(entry, error) from error
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise DataError(f"{shown(entry.path)} must be a file or a folder, got neither")
    return status


def _unreadable(place: os.PathLike[str], error: OSError) -> DataError:
    return DataError(f"{shown(os.fspath(place))} cannot be read: {error.strerror}")


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
