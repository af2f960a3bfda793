"""Variants of a data set: their files, and the check of their arrays."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricopt.errors import ConfigError

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
