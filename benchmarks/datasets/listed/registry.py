"""Listed data sets by name."""

from benchmarks.datasets.contract import DataSource
from benchmarks.datasets.listed.contract import LISTED, ListedImages, ListedSource
from benchmarks.datasets.registry import find_source


def find_listed(name: str) -> ListedSource:
    """Return the source of the listed data set called `name`.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    return LISTED.get(name)()


def find_any(name: str) -> DataSource | ListedSource:
    """Return the source of a data set of either kind.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    return find_listed(name) if name in LISTED else find_source(name)


def load_listed(name: str, *, offline: bool) -> ListedImages:
    """Return a listed data set; its images are read as they are needed."""
    return find_listed(name).load(offline=offline)
