"""Data sets by name."""

from typing import Any

from benchmarks.data.contract import DATASETS, Dataset, DataSource
from benchmarks.data.detection.contract import DETECTION
from benchmarks.data.few_shot.contract import FEW_SHOT
from benchmarks.data.folders.contract import FOLDERS
from benchmarks.data.listed.contract import LISTED
from benchmarks.data.poses.contract import POSES
from benchmarks.data.read_source import ReadSource
from benchmarks.data.reading.contract import READING
from benchmarks.data.translation.contract import TRANSLATION
from metricopt.errors import ConfigError
from metricopt.registry import Registry, find

KINDS: tuple[Registry[Any], ...] = (
    *(DATASETS, LISTED, FOLDERS, DETECTION, FEW_SHOT, POSES, READING, TRANSLATION),
)
"""The registries of data sets, by kind."""


def find_source(name: str) -> DataSource:
    """Return the source of the data set called `name`.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    return DATASETS.get(name)()


def variant_shape(name: str, variant: str) -> tuple[int, ...]:
    """Return the shape of the inputs of a variant of a data set, without loading it.

    Returns:
        The number of examples first.

    Raises:
        ConfigError: if there is no such variant; the message lists the known ones.
    """
    shapes = {spec.name: spec.shape for spec in find_source(name).specs}
    if variant not in shapes:
        known = ", ".join(shapes)
        raise ConfigError(f"{name} has no variant {variant!r}; known: {known}")
    return shapes[variant]


def load_dataset(name: str, variant: str, offline: bool) -> Dataset:
    """Return a data set. Nothing is kept in memory: callers keep what they load."""
    return find_source(name).load(variant=variant, offline=offline)


def resolve_variant(name: str, *, offline: bool | None) -> str:
    """Return the variant of a data set that runs on this machine use.

    Missing files are downloaded if that is allowed.

    Args:
        name: name of the data set.
        offline: whether downloads are forbidden. None is for a plan, which needs no
            data: if no variant is present, the official one is returned.

    Raises:
        DataError: if no variant is present and downloads are forbidden or fail.
    """
    source = find_source(name)
    for status in source.status():
        if status.state != "missing":
            return status.variant.name
    if offline is None:
        return source.variants[0]
    return source.load(offline=offline).variant


def find_any(name: str) -> DataSource | ReadSource:
    """Return the source of a data set of any kind.

    Raises:
        ConfigError: if there is no such data set; the message lists the known names.
    """
    found: DataSource | ReadSource = find(name, *KINDS)()
    return found


def all_names() -> list[str]:
    """Return the names of all data sets, kind by kind."""
    return [name for kind in KINDS for name in kind]
