"""Data sets, one per file; `find_source` knows them by name."""

import sys
from functools import lru_cache

from benchmarks.datasets.base import DATASETS, Dataset, DataSource
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


@lru_cache(maxsize=2)
def load_dataset(name: str, variant: str, offline: bool) -> Dataset:
    """Return a data set; the last two stay in memory."""
    return find_source(name).load(variant=variant, offline=offline)
