"""Sources whose files lie in a folder, as they are or packed."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.data.files.packed import PackedReader, missing
from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import ReadSource


class PackedSource(ReadSource):
    """A data set in files that may be packed.

    Attributes:
        packed: suffix of packed files.
        remedy: what to do where a file is missing or damaged.
    """

    packed: ClassVar[str]
    remedy: ClassVar[str] = "put the right files there, or run tier smoke"

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of all files, without the suffix of packed ones."""

    def _missing(self, folder: Path) -> list[str]:
        return missing(folder, self.names, self.packed)

    def _is_there(self, folder: Path) -> bool:
        return not self._missing(folder)

    def _reader(self, folder: Path) -> Reader:
        return PackedReader(self.name, folder, self.names, self.packed, self.remedy)
