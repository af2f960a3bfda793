"""A cache of parsed arrays, valid as long as their source files do not change."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from benchmarks.data.files.variants import array_digest
from metricopt.errors import DataError
from metricopt.files import read_metadata, read_tensors, write_atomically


@dataclass(frozen=True, eq=False)
class CachedArrays:
    """The parsed arrays of a data set.

    Attributes:
        inputs: float32, or uint8 if the data are bytes, shape [N, ...].
        targets: int64, shape [N].
        digest: sha256 of both arrays from the time they were checked.
    """

    inputs: Tensor
    targets: Tensor
    digest: str


def fingerprint(paths: Sequence[Path], *facts: str) -> str:
    """Return a mark that changes when a source file or a fact changes.

    A file is identified by its path, size and time of change. Reading its content
    would take the time that the cache saves.
    """
    stats = [(str(path.resolve()), path.stat()) for path in paths]
    marks = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return hashlib.sha256(json.dumps([marks, facts]).encode()).hexdigest()


def cached_digest(path: Path, mark: str) -> str | None:
    """Return the digest of the cached arrays, or None if they are absent or stale."""
    # A damaged or unreadable cache counts as absent and is made again.
    with contextlib.suppress(OSError, DataError):
        metadata = read_metadata(path)
        if metadata.get("fingerprint") == mark:
            return metadata.get("digest")
    return None


def read_arrays(path: Path, mark: str) -> CachedArrays | None:
    """Return the cached arrays, or None if they are absent, stale or damaged."""
    digest = cached_digest(path, mark)
    if digest is None:
        return None
    with contextlib.suppress(OSError, DataError, KeyError):
        tensors = read_tensors(path).tensors
        inputs, targets = tensors["inputs"], tensors["targets"]
        if array_digest(inputs.numpy(), targets.numpy()) == digest:
            return CachedArrays(inputs, targets, digest)
    return None


def write_arrays(path: Path, mark: str, arrays: CachedArrays) -> None:
    """Write arrays for `read_arrays`. A cache that cannot be written is no error."""
    tensors = {"inputs": arrays.inputs, "targets": arrays.targets}
    metadata = {"fingerprint": mark, "digest": arrays.digest}
    with contextlib.suppress(OSError):
        write_atomically(path, save(tensors, metadata))
