"""Files of a folder that may be packed, each under its name and a suffix."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.data.files.readers import FolderReader, told
from metricopt.errors import DataError

UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
"""What unpacks a file, by its suffix."""


def missing(folder: Path, names: Iterable[str], suffix: str) -> list[str]:
    """Return the files that are in a folder neither as they are nor packed."""
    return [
        name
        for name in names
        if not any((folder / f"{name}{end}").is_file() for end in ("", suffix))
    ]


class PackedReader(FolderReader):
    """A folder whose files may be packed; where both are there, the plain one counts.

    Args:
        label: what messages call the data set.
        folder: folder of the data set.
        names: files that must be there, without the suffix.
        suffix: of packed files, ".gz" or ".xz".
        remedy: what to do where a file is damaged.

    Raises:
        DataError: if one is missing; the message names all that are.
    """

    def __init__(
        self, label: str, folder: Path, names: Iterable[str], suffix: str, remedy: str
    ) -> None:
        super().__init__(folder, remedy=remedy)
        self._suffix = suffix
        lacking = missing(folder, names, suffix)
        if lacking:
            raise DataError(
                f"{label} needs {' and '.join(lacking)}, or the same with {suffix}, in "
                f"{folder}; copy the files there, or run tier smoke"
            )

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return super().where(self._as_it_is(path))

    def read(self, path: str) -> bytes:
        """Return the content of a file, unpacked.

        Raises:
            DataError: if it cannot be read or unpacked.
        """
        own = self._as_it_is(path)
        content = super().read(own)
        if own == path:
            return content
        try:
            return UNPACK[self._suffix](content)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(
                f"{self.where(path)} cannot be unpacked: {told(error)}"
            ) from error

    def _as_it_is(self, path: str) -> str:
        plain = (self._folder / path).is_file()
        return path if plain else f"{path}{self._suffix}"
