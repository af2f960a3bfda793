"""Where data, the cache, run records and results are stored.

Nothing here needs metricopt, which takes seconds to import: only errors import it.
"""

import errno
import os
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

COMMITTED_RESULTS = ROOT / "results"
"""The reports in git, one folder per experiment and tier."""
TIERS = ("paper", "local", "smoke")
"""The sizes of an experiment."""
OWN_RESULTS = COMMITTED_RESULTS / "own"
"""The reports of the user's own runs, which git ignores."""
SITE = ROOT / "build" / "site"
"""The pages that the verb `site` builds, which git ignores."""

VARIABLES = ("METRICOPT_DATA", "METRICOPT_CACHE", "METRICOPT_STORE")
"""Environment variables that choose folders."""
NEEDED_GIGABYTES = 1.0
"""Free disk space without which no work starts."""
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk, or of a user's share of it, that has no room left."""
PROBE = bytes(4096)
"""What is written to see whether a folder can be: a full disk takes empty files."""


def data_root(explicit: str | Path | None = None) -> Path:
    """Return the folder of all data sets, with one sub-folder for each.

    Args:
        explicit: the folder. Without it, `METRICOPT_DATA` decides; without that, the
            folder is `data` in the cache of the user.

    Raises:
        ConfigError: if the path or a parent of it is a file.
    """
    return _folder(explicit, "METRICOPT_DATA", _user_cache() / "data")


def cache_root() -> Path:
    """Return the folder of everything that can be made again.

    `METRICOPT_CACHE` decides; without it, it is the cache of the user.

    Raises:
        ConfigError: if the path or a parent of it is a file.
    """
    return _folder(None, "METRICOPT_CACHE", _user_cache())


def store_root() -> Path:
    """Return the run store, which has one folder per run.

    `METRICOPT_STORE` decides; without it, the folder is `runs` in the cache.

    Raises:
        ConfigError: if the path or a parent of it is a file.
    """
    return _folder(None, "METRICOPT_STORE", cache_root() / "runs")


def roots() -> dict[str, Path]:
    """Return the folders of data, cache and runs by name."""
    return {"data": data_root(), "cache": cache_root(), "runs": store_root()}


def make_variables_absolute() -> None:
    """Resolve relative paths in environment variables against the current folder.

    Afterwards a process that runs in another folder reads the same paths.
    """
    for name in VARIABLES:
        if os.environ.get(name):
            os.environ[name] = str(Path(os.environ[name]).expanduser().absolute())


def free_gigabytes(folder: Path) -> float:
    """Return the free disk space of a folder, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 1e9


def ensure_writable(what: str, folder: Path) -> None:
    """Make a folder and write to it, before any work is done that would be lost.

    Args:
        what: name of the folder, for messages.
        folder: with its parents, as far as they are missing.

    Raises:
        ConfigError: if that fails, or its disk has too little free space.
    """
    from metricopt.errors import ConfigError

    try:
        free = free_gigabytes(folder)
        if free < NEEDED_GIGABYTES:
            raise ConfigError(
                f"the disk of {folder} has {free:.1f} GB free, "
                f"expected at least {NEEDED_GIGABYTES:.0f} GB"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(
            f"{what} {folder} must be a writable folder: {error.strerror or error}"
        ) from error


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "metricopt"


def _folder(explicit: str | Path | None, variable: str, default: Path) -> Path:
    chosen = Path(explicit or os.environ.get(variable) or default)
    folder = chosen.expanduser().absolute()
    for part in (folder, *folder.parents):
        if part.is_file():
            from metricopt.errors import ConfigError

            raise ConfigError(f"expected a folder, but {part} is a file")
    return folder
