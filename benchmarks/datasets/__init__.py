"""Data sets, one per file; `find_source` knows them by name."""

import sys

from benchmarks.datasets.base import DATASETS, DataSource
from metricopt.registry import import_units


def find_source(name: str) -> DataSource:
    """Return the source of the data set called `name`.

    Raises:
        ConfigError: if there is none; the message lists the known names.
    """
    import_units(sys.modules[__name__])
    return DATASETS.get(name)()


def source_names() -> list[str]:
    """Return the names of all data sets, in alphabetical order."""
    import_units(sys.modules[__name__])
    return list(DATASETS)
