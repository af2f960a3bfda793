"""Sources whose images are read one by one; some are drawn, some have no download."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.data.contract import VariantStatus
from benchmarks.data.files.download import require_md5
from benchmarks.data.files.readers import Reader
from benchmarks.data.files.variants import Variant
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError

FULL = "full"


class ReadSource(ABC):
    """A data set whose images stay in their files.

    Attributes:
        name: name of the data set, which is the label in records.
        folder: folder in the data root.
        expected: numbers that say what it consists of; see `counts`.
        counts: what these numbers say in words, a format.
        digest: expected digest of what is read; empty if it is not known.
        note: how it differs from an official data set; empty if it is one.
    """

    name: ClassVar[str]
    folder: ClassVar[str]
    expected: ClassVar[tuple[int, ...]]
    counts: ClassVar[str]
    digest: ClassVar[str] = ""
    note: ClassVar[str] = ""
    variants: ClassVar[tuple[str, ...]] = (FULL,)

    def load(self, root: str | Path | None = None, *, offline: bool = False) -> Any:
        """Return the data set; its files are downloaded first where that is possible.

        Args:
            root: data root; see `benchmarks.runs.paths.data_root`.
            offline: never download.

        Raises:
            DataError: if files are missing, malformed, or not the expected ones.
        """
        folder = data_root(root) / self.folder
        if not offline and not self._is_there(folder):
            self.fetch(root)
        reader = self._reader(folder)
        try:
            return self._read(reader)
        except DataError as error:
            raise DataError(f"{error}; {reader.remedy}") from error

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Download the missing files and return their paths.

        Raises:
            DataError: if that fails or is not possible; the message says what to do.
        """
        folder = data_root(root) / self.folder
        return [] if self._is_there(folder) else self._fetch(folder, progress)

    def verify(
        self, root: str | Path | None = None, *, variant: str | None = None
    ) -> Any:
        """Check the archives, and the files that say what is in the images.

        Raises:
            DataError: if files are missing, malformed, or not the expected ones.
        """
        for path, md5 in self._published(data_root(root) / self.folder).items():
            require_md5(path, md5, self.anew(path))
        return self.load(root, offline=True)

    def status(self, root: str | Path | None = None) -> list[VariantStatus]:
        """Return whether the files are there, without reading them."""
        folder = data_root(root) / self.folder
        there = self._is_there(folder)
        variant = Variant(FULL, (self.count,), (), self.digest, note=self.note)
        state = "present" if there else "missing"
        return [
            VariantStatus(variant, state, str(folder), "not checked" if there else "-")
        ]

    def anew(self, *paths: Path) -> str:
        """Return how to get files again, for messages."""
        files = " and ".join(map(str, paths))
        return f"delete {files} and run `./reproduce.sh data fetch {self.name}`"

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of images."""

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Download the missing files to their folder and return their paths."""
        return []

    def _published(self, folder: Path) -> Mapping[Path, str]:
        """Return the archives with their published md5: nothing else covers pixels."""
        return {}

    @abstractmethod
    def _is_there(self, folder: Path) -> bool:
        """Return whether the files are in their folder."""

    @abstractmethod
    def _reader(self, folder: Path) -> Reader:
        """Return the reader of the files in their folder.

        Raises:
            DataError: if they are missing; the message says what to do.
        """

    def _check(self, found: tuple[int, ...], digest: str) -> None:
        """Check that what was read is what is expected.

        Raises:
            DataError: if it consists of other numbers, or has another digest.
        """
        if found != self.expected:
            expected, got = (
                self.counts.format(*each) for each in (self.expected, found)
            )
            raise DataError(f"{self.name} must have {expected}, got {got}")
        if self.digest and digest != self.digest:
            raise DataError(
                f"{self.name} must have the digest {self.digest}, got {digest}"
            )

    @abstractmethod
    def _read(self, reader: Reader) -> Any:
        """Return the data set that a reader reads, checked.

        Raises:
            DataError: if it is not the expected one; the message lacks the remedy.
        """


class DividedSource(ReadSource):
    """A data set of two parts.

    Attributes:
        expected: numbers of examples to train on, and of the test.
    """

    expected: ClassVar[tuple[int, int]]

    @property
    def count(self) -> int:
        """Number of examples in both."""
        return sum(self.expected)


class DrawnSource(ReadSource):
    """A data set that is always there: no file is needed."""

    note = "drawn by a program"

    def _is_there(self, folder: Path) -> bool:
        return True


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
