"""Variants of a data set: their local files, the check of their arrays, and a cache."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save
from torch import Tensor

from benchmarks.data.files.download import COMPRESSIONS
from metricopt.errors import ConfigError, DataError
from metricopt.files import read_metadata, read_tensors, write_atomically

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes:
        stem: name without a compression suffix. A local copy may have any suffix.
        urls: official address, then mirrors; empty if the file has no download.
        suffix: compression suffix of the file at these addresses.
        md5: checksum of the published file, compression included. Without it, only the
            decoded content is checked.
    """

    stem: str
    urls: tuple[str, ...] = ()
    suffix: str = ""
    md5: str | None = None


@dataclass(frozen=True)
class Variant:
    """One form of a data set and the arrays expected from it.

    Attributes:
        name: `full` for the official data set.
        shape: expected shape of the inputs, (N, ...).
        class_counts: expected number of examples of each class.
        digest: expected `array_digest` of the first `digest_rows` rows; empty if only
            the checksum of the files is known.
        digest_rows: number of rows that the digest covers; None means all rows.
        train_rows: number of rows of the official training part, which come first;
            None if there is no official split.
        files: the official files; empty if the data are embedded in a dependency.
        alternatives: other sets of local files with the same content, the best one
            first. They are used if `files` are not complete.
        note: how it differs from the official data set.
    """

    name: str
    shape: tuple[int, ...]
    class_counts: tuple[int, ...]
    digest: str
    digest_rows: int | None = None
    train_rows: int | None = None
    files: tuple[DataFile, ...] = ()
    alternatives: tuple[tuple[DataFile, ...], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        known = all(file.md5 for file in self.files) and not self.alternatives
        if not self.digest and not known:
            raise ConfigError(
                f"variant {self.name} needs a digest, or an md5 of each of its files"
            )

    @property
    def forms(self) -> tuple[tuple[DataFile, ...], ...]:
        """All sets of files that it can be parsed from, the preferred one first."""
        return (self.files, *self.alternatives)

    @property
    def downloadable(self) -> bool:
        """Whether every one of `files` has an address."""
        return all(file.urls for file in self.files)


def array_digest(inputs: Array, targets: Array) -> str:
    """Return the sha256 of dtype, shape and bytes of both arrays, in hexadecimal.

    The digest does not depend on how the files were compressed or written as text.
    """
    digest = hashlib.sha256()
    for array in (inputs, targets):
        # An explicit byte order gives the same digest on every machine.
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def difference(spec: Variant, inputs: Array, targets: Array) -> str | None:
    """Say how arrays differ from the arrays a variant expects, or return None.

    Args:
        spec: the variant.
        inputs: decoded inputs, shape [N, ...].
        targets: class of each example, integers from 0 on, shape [N].
    """
    if inputs.shape != spec.shape or len(targets) != len(inputs):
        return f"expected inputs of shape {spec.shape}, got {inputs.shape}"
    last = len(spec.class_counts) - 1
    if len(targets) and not 0 <= targets.min() <= targets.max() <= last:
        found = f"{targets.min()} to {targets.max()}"
        return f"expected classes 0 to {last}, got {found}"
    counts = tuple(np.bincount(targets, minlength=len(spec.class_counts)).tolist())
    if counts != spec.class_counts:
        return f"expected {spec.class_counts} examples per class, got {counts}"
    rows = slice(spec.digest_rows)
    digest = array_digest(inputs[rows], targets[rows])
    if spec.digest and digest != spec.digest:
        return f"expected the digest {spec.digest}, got {digest}"
    return None


Found = dict[Path, DataFile]
"""Local files by path, each with its description."""
CachedArrays = tuple[Tensor, Tensor, str]
"""Inputs, targets, and the sha256 of both from the time they were checked."""


def local_path(folder: Path, file: DataFile) -> Path | None:
    """Return the local copy of a file, packed or not, or None if there is none."""
    candidates = (folder / (file.stem + suffix) for suffix in COMPRESSIONS)
    return next((path for path in candidates if path.is_file()), None)


def find_complete(folder: Path, spec: Variant) -> Found | None:
    """Return the files of the first complete form of a variant, or None.

    A variant that is embedded in a dependency has no files: its result is empty.
    """
    for form in spec.forms:
        found = {path: file for file in form if (path := local_path(folder, file))}
        if len(found) == len(form):
            return found
    return None


def missing_names(folder: Path, spec: Variant) -> list[str]:
    """Return the names of the missing files of a variant.

    If some files of a form are there, its other files are missing. If no form has any
    file, all official files are missing.
    """
    for form in spec.forms:
        missing = [file.stem for file in form if not local_path(folder, file)]
        if len(missing) < len(form):
            return missing
    return [file.stem for file in spec.files]


def listed(names: Sequence[str], joint: str) -> str:
    """Join names for a message. More than two become the first one and a number."""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more"
    return joint.join(names)


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
            return inputs, targets, digest
    return None


def write_arrays(path: Path, mark: str, arrays: CachedArrays) -> None:
    """Write arrays for `read_arrays`. A cache that cannot be written is no error."""
    inputs, targets, digest = arrays
    tensors = {"inputs": inputs, "targets": targets}
    with contextlib.suppress(OSError):
        write_atomically(path, save(tensors, {"fingerprint": mark, "digest": digest}))
