"""The contract of a data set of translation: pairs of sentences, a direction a name."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from benchmarks.data.files.readers import Reader, refuse
from benchmarks.data.packed_source import PackedSource
from benchmarks.data.read_source import DividedSource
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


class TranslationSource(DividedSource):
    """A data set of translation, in one direction.

    Attributes:
        backwards: whether the file has the target first.
    """

    counts = "({:,}, {:,}) pairs to train and test"
    backwards: ClassVar[bool] = False

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


class TextSource(PackedSource, TranslationSource):
    """Texts in a folder, as they are or packed by gzip.

    Attributes:
        texts: names of the texts of every part, without their endings.
        endings: a text has a file with each of them.
    """

    texts: ClassVar[Mapping[str, tuple[str, ...]]]
    endings: ClassVar[tuple[str, ...]]
    packed = ".gz"

    @property
    def names(self) -> list[str]:
        """All files, without the suffix of packed ones."""
        texts = [text for own in self.texts.values() for text in own]
        return [f"{text}{ending}" for text in texts for ending in self.endings]

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        return {
            part: tuple(pair for text in own for pair in self._pairs(reader, text))
            for part, own in self.texts.items()
        }

    @abstractmethod
    def _pairs(self, reader: Reader, text: str) -> tuple[Pair, ...]:
        """Return the pairs of a text.

        Raises:
            DataError: if its files are malformed.
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
    """Return the lines of a text.

    Raises:
        DataError: if it cannot be read or unpacked, is empty, or is not UTF-8.
    """
    text = reader.text(name)
    if not text.strip():
        raise DataError(f"{reader.where(name)} must have a line, but it is empty")
    # Not by splitlines, which also divides at characters that stand within sentences.
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines]
