"""Data sets of any kind by name."""

from benchmarks.data.contract import DataSource
from benchmarks.data.detection.contract import DETECTION
from benchmarks.data.folders.contract import FOLDERS
from benchmarks.data.listed.contract import LISTED
from benchmarks.data.read_source import ReadSource
from benchmarks.data.registry import find_source, source_names


def find_any(name: str) -> DataSource | ReadSource:
    """Return the source of a data set of any kind.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names of
            one kind.
    """
    for kind in (LISTED, FOLDERS, DETECTION):
        if name in kind:
            found: ReadSource = kind.get(name)()
            return found
    return find_source(name)


def all_names() -> list[str]:
    """Return the names of all data sets, kind by kind."""
    return [*source_names(), *LISTED, *FOLDERS, *DETECTION]
