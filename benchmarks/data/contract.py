"""The contract of a data set: get its files, parse them, check and cache them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from benchmarks.data.files.download import download, read_archive
from benchmarks.data.files.readers import told
from benchmarks.data.files.variants import (
    Array,
    CachedArrays,
    DataFile,
    Found,
    Variant,
    array_digest,
    cached_digest,
    difference,
    find_complete,
    fingerprint,
    listed,
    local_path,
    missing_names,
    read_arrays,
    write_arrays,
)
from benchmarks.runs.paths import cache_root, data_root
from metricopt.errors import ConfigError, DataError
from metricopt.registry import Registry

Arrays = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A whole data set before it is split.

    Attributes:
        name: name of its source, such as `covtype`.
        variant: name of the variant, such as `full` or `sample80000`.
        digest: sha256 of the decoded arrays, see `array_digest`.
        inputs: in native units, shape [N, ...]; uint8 if the data are bytes, otherwise
            float32.
        targets: class of each example, int64 in [0, C), shape [N].
        classes: name of each class, C of them.
        note: how this variant differs from the official data set; empty if it does not.
        train_rows: number of rows of the official training part, which come first;
            None if there is no official split.
    """

    name: str
    variant: str
    digest: str
    inputs: Tensor
    targets: Tensor
    classes: tuple[str, ...]
    note: str
    train_rows: int | None = None

    @property
    def label(self) -> str:
        """Name for records and captions, with the variant unless it is `full`."""
        return self.name if self.variant == "full" else f"{self.name}-{self.variant}"


@dataclass(frozen=True)
class VariantStatus:
    """What is known about a variant before it is parsed.

    Attributes:
        variant: the variant.
        state: `embedded`, `present` or `missing`.
        where: first file of the variant, or the folder where its files belong.
        digest: `ok` if these files were parsed and checked before, `not checked` if
            not, `-` if files are missing.
    """

    variant: Variant
    state: str
    where: str
    digest: str


class DataSource(ABC):
    """A data set that can be fetched, checked and loaded.

    A subclass lists its variants and parses their files.

    Attributes:
        name: name of the data set and of its folder in the data root.
        classes: name of each class, C of them.
        specs: variants. The first one is the official and preferred one.
    """

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]
    specs: ClassVar[tuple[Variant, ...]]

    @abstractmethod
    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        """Return inputs and targets from the decompressed files of a variant.

        Inputs of type uint8 keep their type, all others become float32.

        Args:
            contents: content of each file of the first complete form of the variant,
                in the order of that form.

        Raises:
            ValueError: if the content is malformed.
        """

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants, the preferred one first."""
        return tuple(spec.name for spec in self.specs)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The official files of the official variant, which `fetch` downloads."""
        return self.specs[0].files

    def load(
        self,
        root: str | Path | None = None,
        *,
        variant: str | None = None,
        offline: bool = False,
    ) -> Dataset:
        """Return the data set and download missing files first.

        The parsed arrays are cached, so a second load only reads a file.

        Args:
            root: data root; see `benchmarks.runs.paths.data_root`.
            variant: name of the variant. Without it, the first variant whose files are
                present is loaded, or else the official one.
            offline: never download.

        Raises:
            ConfigError: if there is no such variant; the message lists all variants.
            DataError: if files are missing, incomplete or not the expected ones.
        """
        folder = data_root(root) / self.name
        spec = self._choose(folder, variant)
        if not offline and spec.downloadable:
            self._download(folder, spec)
        found = self._files(folder, spec)
        cached = read_arrays(self._cache_path(spec), _mark(spec, found))
        return self._dataset(spec, cached or self._parse_and_check(spec, found))

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Download the missing files of the official variant and return their paths.

        If another form of the same content is complete, nothing is missing.

        Raises:
            DataError: if no mirror delivers one of the files.
        """
        folder = data_root(root) / self.name
        return self._download(folder, self.specs[0], progress=progress)

    def verify(
        self, root: str | Path | None = None, *, variant: str | None = None
    ) -> Dataset:
        """Parse the local files again without the cache and check every row.

        Raises:
            ConfigError: if there is no such variant; the message lists all variants.
            DataError: if files are missing, incomplete or not the expected ones.
        """
        folder = data_root(root) / self.name
        spec = self._choose(folder, variant)
        found = self._files(folder, spec)
        return self._dataset(spec, self._parse_and_check(spec, found))

    def status(self, root: str | Path | None = None) -> list[VariantStatus]:
        """Return what is known about each variant without parsing or downloading."""
        folder = data_root(root) / self.name
        return [self._status(folder, spec) for spec in self.specs]

    def _status(self, folder: Path, spec: Variant) -> VariantStatus:
        found = find_complete(folder, spec)
        if found is None:
            return VariantStatus(spec, "missing", str(folder), "-")
        known = cached_digest(self._cache_path(spec), _mark(spec, found))
        state = "present" if found else "embedded"
        where = str(next(iter(found), "scikit-learn"))
        return VariantStatus(spec, state, where, "ok" if known else "not checked")

    def _choose(self, folder: Path, variant: str | None) -> Variant:
        for spec in self.specs:
            found = find_complete(folder, spec) is not None
            if spec.name == variant or (variant is None and found):
                return spec
        if variant is None:
            return self.specs[0]
        known = ", ".join(self.variants)
        raise ConfigError(f"unknown variant {variant!r} of {self.name}; known: {known}")

    def _download(
        self, folder: Path, spec: Variant, *, progress: bool = True
    ) -> list[Path]:
        if find_complete(folder, spec) is not None:
            return []
        return [
            download(
                file.urls,
                folder / (file.stem + file.suffix),
                md5=file.md5,
                progress=progress,
            )
            for file in spec.files
            if not local_path(folder, file)
        ]

    def _files(self, folder: Path, spec: Variant) -> Found:
        found = find_complete(folder, spec)
        if found is None:
            needed = f"{listed(missing_names(folder, spec), ' and ')} in {folder}"
            remedy = self._remedy(spec)
            raise DataError(f"{self.name} ({spec.name}) needs {needed}; {remedy}")
        return found

    def _remedy(self, spec: Variant) -> str:
        if not spec.downloadable:
            return "copy the right file there, as it has no download"
        if not spec.files:
            return "install the locked version of scikit-learn"
        return f"run `./reproduce.sh data fetch {self.name}`"

    def _parse_and_check(self, spec: Variant, found: Found) -> CachedArrays:
        contents = [
            read_archive(path, name=self.name, md5=file.md5)
            for path, file in found.items()
        ]
        source = listed([*map(str, found)], " + ") or "the installed scikit-learn"
        remedy = ("delete it and " if found else "") + self._remedy(spec)
        try:
            inputs, targets = _contiguous(*self._parse(contents))
        except Exception as error:  # parsers raise many kinds on damaged files
            raise DataError(
                f"{source} cannot be parsed ({told(error)}); {remedy}"
            ) from error
        wrong = difference(spec, inputs, targets)
        if wrong:
            what = f"{source} is not {self.name} ({spec.name})"
            raise DataError(f"{what}: {wrong}; {remedy}")
        tensors = torch.from_numpy(inputs), torch.from_numpy(targets)
        arrays = (*tensors, array_digest(inputs, targets))
        write_arrays(self._cache_path(spec), _mark(spec, found), arrays)
        return arrays

    def _dataset(self, spec: Variant, arrays: CachedArrays) -> Dataset:
        inputs, targets, digest = arrays
        known = (self.name, spec.name, digest, inputs, targets)
        return Dataset(*known, self.classes, spec.note, spec.train_rows)

    def _cache_path(self, spec: Variant) -> Path:
        return cache_root() / "parsed" / f"{self.name}-{spec.name}.safetensors"


DATASETS: Registry[type[DataSource]] = Registry("data set", "benchmarks.data")
"""All data sets by name."""


def _contiguous(inputs: Array, targets: Array) -> Arrays:
    """Return arrays in the types they are kept in; see `Dataset`."""
    dtype = np.uint8 if inputs.dtype == np.uint8 else np.float32
    return np.ascontiguousarray(inputs, dtype), np.ascontiguousarray(targets, np.int64)


def _mark(spec: Variant, found: Found) -> str:
    # The version of scikit-learn changes when its parser or its own data may change.
    return fingerprint(list(found), spec.digest, version("scikit-learn"))
