"""The contract of a data set: find or download its files, parse, check, cache."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from benchmarks.array_cache import (
    CachedArrays,
    cached_digest,
    fingerprint,
    read_arrays,
    write_arrays,
)
from benchmarks.download import COMPRESSIONS, download, read_archive
from benchmarks.paths import cache_root, data_root
from benchmarks.variants import Array, DataFile, Variant, array_digest, difference
from metricopt.errors import ConfigError, DataError
from metricopt.registry import Registry

Arrays = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A whole data set, not yet split.

    Attributes:
        name: name of its source, such as `covtype`.
        variant: which form of it this is, such as `full` or `sample80000`.
        digest: sha256 of the decoded arrays, see `array_digest`.
        inputs: float32, shape [N, ...], in native units.
        targets: class of each example, int64 in [0, C), shape [N].
        classes: name of each class, C of them.
        note: how this variant differs from the official data set; empty if not at all.
    """

    name: str
    variant: str
    digest: str
    inputs: Tensor
    targets: Tensor
    classes: tuple[str, ...]
    note: str

    @property
    def label(self) -> str:
        """Name for records and captions: the variant is told unless it is `full`."""
        return self.name if self.variant == "full" else f"{self.name}-{self.variant}"


@dataclass(frozen=True)
class VariantStatus:
    """What is known of a variant without parsing it.

    Attributes:
        variant: the variant.
        state: `embedded`, `present` or `missing`.
        where: its first file, or the folder it belongs in.
        digest: `ok` if these very files were parsed and checked, else `not checked`.
    """

    variant: Variant
    state: str
    where: str
    digest: str


class DataSource(ABC):
    """Where a data set comes from.

    A subclass names its variants, the official one first, and parses their files.

    Attributes:
        name: name of the data set, and of its folder below the data root.
        classes: name of each class, C of them.
        specs: its variants, preferred one first.
    """

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]
    specs: ClassVar[tuple[Variant, ...]]

    @abstractmethod
    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        """Turn the decompressed files of a variant into inputs and targets.

        A ValueError says that the content is malformed.
        """

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants, preferred one first."""
        return tuple(spec.name for spec in self.specs)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Files of the official variant: what `fetch` downloads."""
        return self.specs[0].files

    def load(
        self,
        root: str | Path | None = None,
        *,
        variant: str | None = None,
        offline: bool = False,
    ) -> Dataset:
        """Return the data set, downloading what is missing.

        The parsed arrays are cached, so that a second load is a file read.

        Args:
            root: data root; see `benchmarks.paths.data_root`.
            variant: which one; without it the first one whose files are present, or
                the official one if none is.
            offline: never download.

        Raises:
            ConfigError: if there is no such variant; the message lists them.
            DataError: if files are missing, incomplete, or not those expected.
        """
        folder = data_root(root) / self.name
        spec = self._choose(folder, variant)
        if not offline and spec.downloadable:
            self._download(folder, spec)
        paths = self._paths(folder, spec)
        cached = read_arrays(self._cache_path(spec), _mark(spec, paths))
        return self._dataset(spec, cached or self._parse_and_check(spec, paths))

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Download the missing files of the official variant, and return their paths.

        Raises:
            DataError: if no mirror delivers one of them.
        """
        folder = data_root(root) / self.name
        return self._download(folder, self.specs[0], progress=progress)

    def verify(
        self, root: str | Path | None = None, *, variant: str | None = None
    ) -> Dataset:
        """Parse the local files anew, whatever is cached, and check every row.

        Raises:
            ConfigError: if there is no such variant; the message lists them.
            DataError: if files are missing, incomplete, or not those expected.
        """
        folder = data_root(root) / self.name
        spec = self._choose(folder, variant)
        paths = self._paths(folder, spec)
        return self._dataset(spec, self._parse_and_check(spec, paths))

    def status(self, root: str | Path | None = None) -> list[VariantStatus]:
        """Return what is known of every variant, without parsing or downloading."""
        folder = data_root(root) / self.name
        return [self._status(folder, spec) for spec in self.specs]

    def _status(self, folder: Path, spec: Variant) -> VariantStatus:
        paths = [_local_path(folder, file) for file in spec.files]
        found = [path for path in paths if path]
        if len(found) < len(paths):
            return VariantStatus(spec, "missing", str(folder), "-")
        known = cached_digest(self._cache_path(spec), _mark(spec, found))
        state = "present" if found else "embedded"
        where = str(found[0]) if found else "scikit-learn"
        return VariantStatus(spec, state, where, "ok" if known else "not checked")

    def _choose(self, folder: Path, variant: str | None) -> Variant:
        for spec in self.specs:
            found = all(_local_path(folder, file) for file in spec.files)
            if spec.name == variant or (variant is None and found):
                return spec
        if variant is None:
            return self.specs[0]
        known = ", ".join(self.variants)
        raise ConfigError(f"unknown variant {variant!r} of {self.name}; known: {known}")

    def _download(
        self, folder: Path, spec: Variant, *, progress: bool = True
    ) -> list[Path]:
        return [
            download(file.urls, folder / (file.stem + file.suffix), progress=progress)
            for file in spec.files
            if not _local_path(folder, file)
        ]

    def _paths(self, folder: Path, spec: Variant) -> list[Path]:
        paths = [_local_path(folder, file) for file in spec.files]
        missing = [
            file.stem for file, path in zip(spec.files, paths, strict=True) if not path
        ]
        if missing:
            needed = f"{' and '.join(missing)} in {folder}"
            remedy = self._remedy(spec)
            raise DataError(f"{self.name} ({spec.name}) needs {needed}; {remedy}")
        return [path for path in paths if path]

    def _remedy(self, spec: Variant) -> str:
        if not spec.downloadable:
            return "it has no download, so copy the right file there"
        if not spec.files:
            return "install the locked version of scikit-learn"
        return f"run `./reproduce.sh data fetch {self.name}`"

    def _parse_and_check(self, spec: Variant, paths: Sequence[Path]) -> CachedArrays:
        contents = [read_archive(path, name=self.name) for path in paths]
        source = " + ".join(map(str, paths)) or "the installed scikit-learn"
        remedy = ("delete it and " if paths else "") + self._remedy(spec)
        try:
            inputs, targets = self._parse(contents)
        except ValueError as error:
            raise DataError(f"{source} cannot be parsed ({error}); {remedy}") from error
        inputs = np.ascontiguousarray(inputs, np.float32)
        targets = np.ascontiguousarray(targets, np.int64)
        wrong = difference(spec, inputs, targets)
        if wrong:
            what = f"{source} is not {self.name} ({spec.name})"
            raise DataError(f"{what}: {wrong}; {remedy}")
        arrays = CachedArrays(
            torch.from_numpy(inputs),
            torch.from_numpy(targets),
            array_digest(inputs, targets),
        )
        write_arrays(self._cache_path(spec), _mark(spec, paths), arrays)
        return arrays

    def _dataset(self, spec: Variant, arrays: CachedArrays) -> Dataset:
        return Dataset(
            name=self.name,
            variant=spec.name,
            digest=arrays.digest,
            inputs=arrays.inputs,
            targets=arrays.targets,
            classes=self.classes,
            note=spec.note,
        )

    def _cache_path(self, spec: Variant) -> Path:
        return cache_root() / "parsed" / f"{self.name}-{spec.name}.safetensors"


DATASETS: Registry[type[DataSource]] = Registry("data set")
"""All data sets by name; `benchmarks.datasets.find_source` fills it."""


def _mark(spec: Variant, paths: Sequence[Path]) -> str:
    # The version stands for the parser, and for the data embedded in the package.
    return fingerprint(paths, spec.digest, version("scikit-learn"))


def _local_path(folder: Path, file: DataFile) -> Path | None:
    """Return the local copy of a file, whatever its compression, or none."""
    candidates = (folder / (file.stem + suffix) for suffix in COMPRESSIONS)
    return next((path for path in candidates if path.is_file()), None)
