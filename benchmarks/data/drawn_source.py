"""Data sets that are drawn by a program when they are read, for the smoke tiers."""

from pathlib import Path

from benchmarks.data.read_source import ReadSource


class DrawnSource(ReadSource):
    """A data set that is always there: no file is needed."""

    note = "drawn by a program"

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Return nothing: no file is needed."""
        return []

    def _is_there(self, folder: Path) -> bool:
        return True
