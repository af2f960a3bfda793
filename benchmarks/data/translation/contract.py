"""The contract of a data set of translation: pairs of sentences, a direction a name."""

import gzip
import hashlib
import json
import zlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from benchmarks.data.files.readers import Reader, refuse, told
from benchmarks.data.read_source import ReadSource
from metricopt.errors import DataError
from metricopt.registry import Registry

TRAIN, TEST = "train", "test"
COMMAS = str.maketrans("şţŞŢ", "șțȘȚ")
"""Romanian s and t have a comma below; older texts write a cedilla."""


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a data set.

    Attributes:
        label: name of the data set, direction included.
        digest: sha256 of all sentences.
        parts: the pairs of `train` and `test`.
    """

    label: str
    digest: str
    parts: Mapping[str, tuple[Pair, ...]]


class TranslationSource(ReadSource):
    """A data set of translation, in one direction.

    Attributes:
        expected: pairs to train on, and of the test.
        backwards: whether the file has the target first.
    """

    expected: ClassVar[tuple[int, int]]
    counts = "({:,}, {:,}) pairs to train and test"
    backwards: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """Number of pairs."""
        return sum(self.expected)

    def _read(self, reader: Reader) -> Pairs:
        found = self._parts(reader)
        if self.backwards:
            found = {n: tuple(Pair(*p[::-1]) for p in own) for n, own in found.items()}
        content = json.dumps([*found.values()], ensure_ascii=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        self._check((len(found[TRAIN]), len(found[TEST])), digest)
        return Pairs(self.name, digest, found)

    @abstractmethod
    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        """Return the pairs of every part.

        Raises:
            DataError: if files are missing or malformed.
        """


TRANSLATION: Registry[type[TranslationSource]] = Registry(
    "data set of translation", "benchmarks.data.translation"
)
"""All data sets of translation by name."""


def paired(
    where: str, sources: Sequence[str], targets: Sequence[str]
) -> tuple[Pair, ...]:
    """Return sentences with their translations, line by line.

    Spaces are single ones, and Romanian letters have their comma.

    Args:
        where: what messages call the files.
        sources: sentences.
        targets: the translation of each.

    Raises:
        DataError: if there are none, their numbers differ, or a sentence is empty or
            has broken characters; the message counts and names the lines.
    """
    if len(sources) != len(targets) or not sources:
        raise DataError(
            f"{where} must have as many translations as sentences, got {len(sources)} "
            f"sentences and {len(targets)} translations"
        )
    pairs = [
        Pair(*(" ".join(text.translate(COMMAS).split()) for text in pair))
        for pair in zip(sources, targets, strict=True)
    ]
    numbered = list(enumerate(pairs, start=1))
    empty = [f"line {n}" for n, pair in numbered if not all(pair)]
    refuse(where, "empty sentences", empty)
    broken = [f"line {n}" for n, pair in numbered if "\ufffd" in "".join(pair)]
    refuse(where, "sentences with broken characters", broken)
    return tuple(pairs)


def lines_of(reader: Reader, name: str) -> list[str]:
    """Return the lines of a text, which may be packed by gzip under its name and .gz.

    Raises:
        DataError: if it cannot be read or unpacked, or is not UTF-8.
    """
    packed = f"{name}.gz"
    if name in reader.sizes:
        return _lines(reader.text(name))
    where = reader.where(packed)
    try:
        content = gzip.decompress(reader.read(packed))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} cannot be unpacked: {told(error)}") from error
    return _lines(_Unpacked(where, content).text(packed))


def found_file(folder: Path, name: str) -> bool:
    """Return whether a text is in a folder, as it is or packed."""
    return any((folder / f"{name}{suffix}").is_file() for suffix in ("", ".gz"))


def require_files(
    source: TranslationSource, folder: Path, names: Sequence[str]
) -> None:
    """Check that texts are in a folder.

    Raises:
        DataError: if one is missing; the message names all that are.
    """
    missing = [name for name in names if not found_file(folder, name)]
    if missing:
        raise DataError(
            f"{source.name} needs {' and '.join(missing)}, or the same with .gz, in "
            f"{folder}; copy the files there, or run tier smoke"
        )


def _lines(text: str) -> list[str]:
    # Not by splitlines, which also divides at characters that stand within sentences.
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


class _Unpacked(Reader):
    """One file in memory."""

    def __init__(self, where: str, content: bytes) -> None:
        self._where, self._content = where, content

    @property
    def sizes(self) -> Mapping[str, int]:
        return {self._where: len(self._content)}

    def where(self, path: str) -> str:
        return self._where

    def read(self, path: str) -> bytes:
        return self._content
