"""Where data, intermediate products and run records lie, and how files are written."""

import os
import shutil
import tempfile
from pathlib import Path

from metricopt.errors import ConfigError


def data_root(explicit: str | Path | None = None) -> Path:
    """Return the folder that holds one sub-folder per data set.

    Args:
        explicit: a folder given by the caller; without it `METRICOPT_DATA` decides,
            and without that the user's cache.

    Raises:
        ConfigError: if the path is that of a file.
    """
    return _folder(explicit, "METRICOPT_DATA", _user_cache() / "data")


def cache_root(explicit: str | Path | None = None) -> Path:
    """Return the folder of everything that can be made again: parsed data, artifacts.

    Args:
        explicit: a folder given by the caller; without it `METRICOPT_CACHE` decides,
            and without that the user's cache.

    Raises:
        ConfigError: if the path is that of a file.
    """
    return _folder(explicit, "METRICOPT_CACHE", _user_cache())


def store_root(explicit: str | Path | None = None) -> Path:
    """Return the run store: one folder per run.

    Args:
        explicit: a folder given by the caller; without it `METRICOPT_STORE` decides,
            and without that `runs` below the cache.

    Raises:
        ConfigError: if the path is that of a file.
    """
    return _folder(explicit, "METRICOPT_STORE", cache_root() / "runs")


def roots() -> dict[str, Path]:
    """Return the three folders by what they hold."""
    return {"data": data_root(), "cache": cache_root(), "runs": store_root()}


def free_gigabytes(folder: Path) -> float:
    """Return the free disk space at a folder, or where it would be made."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 1e9


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or nothing.

    The temporary file lies in the same folder, since a rename is atomic only within
    one file system. Missing folders are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; data and records follow the user's umask.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "metricopt"


def _folder(explicit: str | Path | None, variable: str, default: Path) -> Path:
    chosen = Path(explicit or os.environ.get(variable) or default)
    folder = chosen.expanduser().absolute()
    for part in (folder, *folder.parents):
        if part.is_file():
            raise ConfigError(f"expected a folder, and {part} is a file")
    return folder
