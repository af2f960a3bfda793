"""All files below a folder, wherever links lead."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from benchmarks.data.files.refusal import shown
from metricopt.errors import DataError

Identity = tuple[int, int]
"""Device and number of a folder, which no other one has."""


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
