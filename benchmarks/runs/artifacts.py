"""Intermediate products, content-addressed: pre-trained networks, value functions.

An artifact is found by the hash of everything that determines it, so rows that need the
same one share it, and a killed run finds what was finished.
"""

import contextlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import save
from torch import Tensor

from benchmarks.runs.codec import content_digest
from benchmarks.runs.paths import cache_root, store_root
from metricopt.adapters.export import state_digest
from metricopt.errors import ConfigError, DataError
from metricopt.files import read_tensors, told, write_atomically


class Artifact(NamedTuple):
    """Tensors by name, and JSON-able facts about them."""

    tensors: dict[str, Tensor]
    facts: dict[str, object]


def get_or_make(kind: str, key: object, make: Callable[[], Artifact]) -> Artifact:
    """Return the artifact of a key, made and stored at the first call.

    A damaged one is made again.

    Args:
        kind: name of the folder, such as `theta`.
        key: JSON-able; everything that determines the artifact.
        make: makes it.
    """
    stored = find(kind, key)
    if stored is not None:
        return stored
    made = make()
    path = artifact_path(kind, key)
    _note(path)
    tensors = {name: tensor.contiguous() for name, tensor in made.tensors.items()}
    facts = json.dumps(made.facts)
    content = save(tensors, {"facts": facts, "digest": _digest(tensors, facts)})
    write_atomically(path, content)
    if kind == FEATURES:
        _keep_to_limit(path)
    return made


def artifact_path(kind: str, key: object) -> Path:
    """Return where the artifact of a key is, or would be."""
    name = f"{content_digest(key)}.safetensors"
    return cache_root() / "artifacts" / kind / name


def find(kind: str, key: object) -> Artifact | None:
    """Return the artifact of a key, or None if there is none.

    A damaged one counts as none: a warning names it, and it is moved aside.

    Args:
        kind: name of the folder.
        key: see `get_or_make`.

    Raises:
        DataError: if it is a folder, which what is made could not replace.
    """
    path = artifact_path(kind, key)
    if path.is_dir():
        raise DataError(f"{path} must be a file, got a folder; delete it")
    try:
        found = _read(path)
    except FileNotFoundError:
        return None
    except (DataError, KeyError, TypeError, ValueError, RecursionError) as error:
        _move_aside(path, error)
        return None
    _note(path)
    # The time of the last use. Another process may have removed the file by now.
    with contextlib.suppress(OSError):
        os.utime(path)
    return found


NOTED: ContextVar[set[str]] = ContextVar("names of artifacts that were found or made")


@contextmanager
def noted() -> Iterator[set[str]]:
    """Note the names of all artifacts that are found or made inside the context."""
    token = NOTED.set(set())
    try:
        yield NOTED.get()
    finally:
        NOTED.reset(token)


def _note(path: Path) -> None:
    names = NOTED.get(None)
    if names is not None:
        names.add(f"{path.parent.name}/{path.name}")


def packed(names: Iterable[str]) -> dict[str, bytes]:
    """Return the files of artifacts by name, for the cache of another machine.

    One that was removed meanwhile to make room is left out.
    """
    folder, found = cache_root() / "artifacts", {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found[name] = (folder / name).read_bytes()
    return found


def lacking(names: Iterable[str]) -> list[str]:
    """Return the names of the artifacts that the cache of this machine lacks."""
    folder = cache_root() / "artifacts"
    return [name for name in names if not (folder / name).is_file()]


def unpack(files: Mapping[str, bytes]) -> None:
    """Put artifacts of another machine into the cache."""
    for name, content in files.items():
        write_atomically(cache_root() / "artifacts" / name, content)


def _read(path: Path) -> Artifact:
    """Return a stored artifact.

    Raises:
        ValueError, TypeError: if its content is not that of its digest.
        KeyError: if it has none.
        DataError: if it is no artifact at all.
    """
    tensors, metadata = read_tensors(path)
    text = metadata["facts"]
    if metadata["digest"] != _digest(tensors, text):
        raise ValueError("its content is not what was written")
    facts = json.loads(text)
    if not isinstance(facts, dict):
        raise TypeError("its facts have no names")
    return Artifact(tensors, facts)


def _digest(tensors: Mapping[str, Tensor], facts: str) -> str:
    return content_digest([state_digest(tensors), facts])


def _move_aside(path: Path, error: Exception) -> None:
    """Keep a damaged artifact for inspection, out of the way of a new one."""
    with contextlib.suppress(OSError):
        os.replace(path, path.with_suffix(".damaged"))
    warnings.warn(
        f"the artifact {path} is damaged and counts as not made ({told(error)}); "
        f"it was moved to {path.stem}.damaged",
        stacklevel=3,
    )


RUNS = "runs"
"""Kind of the run records, which lie in the store and are no artifacts."""
FEATURES = "features"
"""Kind of the artifacts that the size limit applies to."""


def size_limit() -> float:
    """Return how many bytes of features the cache keeps.

    `METRICOPT_CACHE_GIGABYTES` decides; the default is 20 GB.

    Raises:
        ConfigError: if the variable is no number of at least 0.
    """
    text = os.environ.get("METRICOPT_CACHE_GIGABYTES") or "20"
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not gigabytes >= 0:
        raise ConfigError(
            f"METRICOPT_CACHE_GIGABYTES must be a number of at least 0, got {text!r}"
        )
    return gigabytes * 1e9


def cache_kinds() -> dict[str, tuple[int, int]]:
    """Return the number of files and of bytes in the cache, by kind.

    The kinds are parsed data sets, checkpoints of pre-training, each kind of artifact,
    and the run records.
    """
    return {
        kind: (len(paths), sum(map(_size, paths)))
        for kind, paths in _files_by_kind().items()
    }


def clear(kinds: Iterable[str]) -> None:
    """Remove all files of these kinds from the cache.

    Raises:
        KeyError: if there is no such kind.
    """
    files = _files_by_kind()
    for path in [path for kind in kinds for path in files[kind]]:
        path.unlink(missing_ok=True)
        # The folder of a run holds nothing else.
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _files_by_kind() -> dict[str, list[Path]]:
    root = cache_root()
    folders = {name: root / name for name in ("parsed", "pretraining")}
    folders[FEATURES] = root / "artifacts" / FEATURES
    folders |= {path.name: path for path in sorted(root.glob("artifacts/*"))}
    found = {kind: _files(folder) for kind, folder in folders.items()}
    # A run may have a marker or a torn record beside its record.
    return found | {RUNS: list(store_root().glob("*/*/*/record.json*"))}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _keep_to_limit(newest: Path) -> None:
    """Remove the features that were not used for longest until the limit is kept.

    Args:
        newest: the file just written, which stays even if it is larger than the limit.
    """
    limit, total = size_limit(), 0
    files = sorted(newest.parent.glob("*.safetensors"), key=_last_use, reverse=True)
    for path in [newest, *(path for path in files if path != newest)]:
        total += _size(path)
        if total > limit and path != newest:
            path.unlink(missing_ok=True)


def _last_use(path: Path) -> float:
    # Another process may have removed the file.
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
