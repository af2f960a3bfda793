"""Listed data sets by name."""

from benchmarks.data.listed.contract import LISTED, ListedImages, ListedSource


def find_listed(name: str) -> ListedSource:
    """Return the source of the listed data set called `name`.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    return LISTED.get(name)()


def load_listed(name: str, *, offline: bool) -> ListedImages:
    """Return a listed data set; its images are read as they are needed."""
    return find_listed(name).load(offline=offline)
