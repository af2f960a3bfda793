"""Files of a folder that may be packed, each under its name and a suffix."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from benchmarks.data.files.readers import LARGEST, FolderReader, check_size, told
from metricopt.errors import DataError

UNPACK: Mapping[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda packed: gzip.GzipFile(fileobj=packed),
    ".xz": lzma.LZMAFile,
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

    Files are named without the suffix.

    Args:
        label: what messages call the data set.
        folder: folder of the data set.
        names: files that must be there.
        suffix: of packed files, ".gz" or ".xz".
        remedy: what to do where a file is missing or damaged.

    Raises:
        DataError: if one is missing; the message names all that are.
    """

    def __init__(
        self, label: str, folder: Path, names: Iterable[str], suffix: str, remedy: str
    ) -> None:
        super().__init__(folder, remedy=remedy)
        self._suffix = suffix
        absent = missing(folder, names, suffix)
        if absent:
            raise DataError(
                f"{label} needs {' and '.join(absent)}, or the same with {suffix}, in "
                f"{folder}; {remedy}"
            )

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return super().where(self._on_disk(path))

    def read(self, path: str) -> bytes:
        """Return the content of a file, unpacked.

        Raises:
            DataError: if it cannot be read or unpacked, or is too large.
        """
        name = self._on_disk(path)
        content = super().read(name)
        if name == path:
            return content
        try:
            with UNPACK[self._suffix](io.BytesIO(content)) as file:
                content = file.read(LARGEST + 1)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(
                f"{self.where(path)} cannot be unpacked: {told(error)}"
            ) from error
        check_size(len(content), f"{self.where(path)}, unpacked,")
        return content

    def _on_disk(self, path: str) -> str:
        """Return the name of the packed file where there is that alone."""
        packed = f"{path}{self._suffix}"
        plain = (self._folder / path).is_file()
        return packed if not plain and (self._folder / packed).is_file() else path
