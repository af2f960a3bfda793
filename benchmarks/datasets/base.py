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
Found = dict[Path, DataFile]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A whole data set, not yet split.

    Attributes:
        name: name of its source, such as `covtype`.
        variant: which form of it this is, such as `full` or `sample80000`.
        digest: sha256 of the decoded arrays, see `array_digest`.
        inputs: shape [N, ...], in native units: uint8 where these are bytes, float32
            everywhere else.
        targets: class of each example, int64 in [0, C), shape [N].
        classes: name of each class, C of them.
        note: how this variant differs from the official data set; empty if not at all.
        train_rows: how many rows, from the first on, are the official training part;
            none means that there is no official split.
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

        Inputs of type uint8 stay so; all others become float32. A ValueError says that
        the content is malformed.

        Args:
            contents: of the files of the first form of the variant that is complete,
                in the order of that form.
        """

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants, preferred one first."""
        return tuple(spec.name for spec in self.specs)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Official files of the official variant: what `fetch` downloads."""
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
        found = self._files(folder, spec)
        cached = read_arrays(self._cache_path(spec), _mark(spec, found))
        return self._dataset(spec, cached or self._parse_and_check(spec, found))

    def fetch(
        self, root: str | Path | None = None, *, progress: bool = True
    ) -> list[Path]:
        """Download the missing files of the official variant, and return their paths.

        Nothing is missing where another form of the same content is complete.

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
        found = self._files(folder, spec)
        return self._dataset(spec, self._parse_and_check(spec, found))

    def status(self, root: str | Path | None = None) -> list[VariantStatus]:
        """Return what is known of every variant, without parsing or downloading."""
        folder = data_root(root) / self.name
        return [self._status(folder, spec) for spec in self.specs]

    def _status(self, folder: Path, spec: Variant) -> VariantStatus:
        found = _complete(folder, spec)
        if found is None:
            return VariantStatus(spec, "missing", str(folder), "-")
        known = cached_digest(self._cache_path(spec), _mark(spec, found))
        state = "present" if found else "embedded"
        where = str(next(iter(found), "scikit-learn"))
        return VariantStatus(spec, state, where, "ok" if known else "not checked")

    def _choose(self, folder: Path, variant: str | None) -> Variant:
        for spec in self.specs:
            found = _complete(folder, spec) is not None
            if spec.name == variant or (variant is None and found):
                return spec
        if variant is None:
            return self.specs[0]
        known = ", ".join(self.variants)
        raise ConfigError(f"unknown variant {variant!r} of {self.name}; known: {known}")

    def _download(
        self, folder: Path, spec: Variant, *, progress: bool = True
    ) -> list[Path]:
        if _complete(folder, spec) is not None:
            return []
        return [
            download(
                file.urls,
                folder / (file.stem + file.suffix),
                md5=file.md5,
                progress=progress,
            )
            for file in spec.files
            if not _local_path(folder, file)
        ]

    def _files(self, folder: Path, spec: Variant) -> Found:
        found = _complete(folder, spec)
        if found is None:
            needed = f"{_listed(_missing(folder, spec), ' and ')} in {folder}"
            remedy = self._remedy(spec)
            raise DataError(f"{self.name} ({spec.name}) needs {needed}; {remedy}")
        return found

    def _remedy(self, spec: Variant) -> str:
        if not spec.downloadable:
            return "it has no download, so copy the right file there"
        if not spec.files:
            return "install the locked version of scikit-learn"
        return f"run `./reproduce.sh data fetch {self.name}`"

    def _parse_and_check(self, spec: Variant, found: Found) -> CachedArrays:
        contents = [
            read_archive(path, name=self.name, md5=file.md5)
            for path, file in found.items()
        ]
        source = _listed([*map(str, found)], " + ") or "the installed scikit-learn"
        remedy = ("delete it and " if found else "") + self._remedy(spec)
        try:
            inputs, targets = self._parse(contents)
        except ValueError as error:
            raise DataError(f"{source} cannot be parsed ({error}); {remedy}") from error
        dtype = np.uint8 if inputs.dtype == np.uint8 else np.float32
        inputs = np.ascontiguousarray(inputs, dtype)
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
        write_arrays(self._cache_path(spec), _mark(spec, found), arrays)
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
            train_rows=spec.train_rows,
        )

    def _cache_path(self, spec: Variant) -> Path:
        return cache_root() / "parsed" / f"{self.name}-{spec.name}.safetensors"


DATASETS: Registry[type[DataSource]] = Registry("data set")
"""All data sets by name; `benchmarks.datasets.find_source` fills it."""


def _mark(spec: Variant, found: Found) -> str:
    # The version stands for the parser, and for the data embedded in the package.
    return fingerprint(list(found), spec.digest, version("scikit-learn"))


def _complete(folder: Path, spec: Variant) -> Found | None:
    """Return the files of the first form that lies there whole, or none."""
    for form in spec.forms:
        found = {path: file for file in form if (path := _local_path(folder, file))}
        if len(found) == len(form):
            return found
    return None


def _missing(folder: Path, spec: Variant) -> list[str]:
    """Return what is not there of the first form begun, or of the official one."""
    for form in spec.forms:
        missing = [file.stem for file in form if not _local_path(folder, file)]
        if len(missing) < len(form):
            return missing
    return [file.stem for file in spec.files]


def _listed(names: Sequence[str], joint: str) -> str:
    """Join names for a message; of many, tell the first one and their number."""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more"
    return joint.join(names)


def _local_path(folder: Path, file: DataFile) -> Path | None:
    """Return the local copy of a file, whatever its compression, or none."""
    candidates = (folder / (file.stem + suffix) for suffix in COMPRESSIONS)
    return next((path for path in candidates if path.is_file()), None)
