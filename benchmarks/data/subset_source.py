"""Small parts of a data set, for runs on a CPU and checks, that have no download."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import ReadSource
from metricopt.errors import DataError


class SubsetSource(ReadSource):
    """A zip file that has no download.

    Attributes:
        archive: name of the file.
    """

    archive: ClassVar[str]

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Return nothing if the file is there; it has no download.

        Raises:
            DataError: if it is missing.
        """
        self.load(root, offline=True)
        return []

    def anew(self, *paths: Path) -> str:
        """Return how to get files again, for messages."""
        files = " and ".join(map(str, paths))
        return f"put the right file in the place of {files}, which has no download"

    def _is_there(self, folder: Path) -> bool:
        return (folder / self.archive).is_file()

    def _reader(self, folder: Path) -> Reader:
        if not self._is_there(folder):
            raise DataError(
                f"{self.name} needs {self.archive} in {folder}; it has no download, so "
                "copy the file there, or run tier smoke or paper"
            )
        return self._opened(folder)

    @abstractmethod
    def _opened(self, folder: Path) -> Reader:
        """Return the reader of the files that are there."""
