"""Published vocabularies of BERT: the number of every character of a text."""

import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from benchmarks.networks.reading.bert import PAGE
from benchmarks.problems.pretrained.base_weights import published
from benchmarks.problems.structured.texts import Vocabulary
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DataError

IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))
"""Ranges of characters that are words by themselves."""


@dataclass(frozen=True)
class VocabularyFile:
    """Where a vocabulary is published.

    Attributes:
        name: of the file here.
        sha256: its checksum.
        url: where it is.
    """

    name: str
    sha256: str
    url: str


PUBLISHED: Mapping[str, VocabularyFile] = {
    # Byte by byte the file of Google's BERT for Chinese.
    "macbert": VocabularyFile(
        "chinese-macbert-base-vocab.txt",
        "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
        f"{PAGE}/vocab.txt",
    ),
}
"""Published vocabularies by name."""


class WordPieces(Vocabulary):
    """A vocabulary of BERT, which reads `[CLS] question [SEP] paragraph [SEP]`.

    Every character has a number, so that answers have places. One that goes on a word
    is the piece `##x`; words are divided by spaces, punctuation and ideographs. Differs
    from BERT's tokenizer: it never takes several characters for one piece, and spaces
    and combining accents, which BERT leaves out, are `[UNK]`.

    Source: Devlin et al., NAACL 2019.
    """

    @classmethod
    def of_file(cls, content: bytes, where: str) -> Self:
        """Return the vocabulary of a file with a piece in every line.

        Raises:
            DataError: if it is no text in UTF-8, or lacks what BERT needs.
        """
        try:
            pieces = content.decode().split("\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{where} must be text in UTF-8: {error}") from error
        last = len(pieces) - (not pieces[-1])
        numbers = {piece.rstrip("\r"): at for at, piece in enumerate(pieces[:last])}
        missing = [each for each in ("[UNK]", "[CLS]", "[SEP]") if each not in numbers]
        if missing or len(numbers) != last or numbers.get("[PAD]") != 0:
            raise DataError(
                f"{where} must have a piece of its own in every line, [PAD] in the "
                f"first, and [UNK], [CLS] and [SEP]; got {last} lines, "
                f"{len(numbers)} different ones, without {', '.join(missing) or 'none'}"
            )
        end = (numbers["[SEP]"],)
        return cls(numbers, numbers["[UNK]"], (numbers["[CLS]"],), end, end)

    @classmethod
    def named(cls, name: str, *, offline: bool = True) -> Self:
        """Return a published vocabulary.

        Raises:
            ConfigError: if there is none of this name.
            DataError: if the file is missing or another one.
        """
        if name not in PUBLISHED:
            raise ConfigError(
                f"expected a vocabulary of {', '.join(PUBLISHED)}, got {name!r}"
            )
        file = PUBLISHED[name]
        path, content = published(
            file.name, file.sha256, file.url, data_root(), offline=offline
        )
        return cls.of_file(content, str(path))

    def encoded(self, text: str) -> list[int]:
        """Return the number of every character, that of `[UNK]` for unknown ones."""
        plain = [_plain(each) for each in text]
        pieces = [
            f"##{each}" if _is_of_word(before) and _is_of_word(each) else each
            for before, each in zip([" ", *plain], plain, strict=False)
        ]
        return [self.numbers.get(piece, self.unknown) for piece in pieces]


def _plain(character: str) -> str:
    """Return a character in lower case and without accents."""
    return unicodedata.normalize("NFD", character.lower())[0]


def _is_of_word(character: str) -> bool:
    """Return whether a character makes a word with its neighbours."""
    code = ord(character)
    return not (
        character in string.punctuation
        or unicodedata.category(character)[0] in "PZC"
        or any(first <= code <= last for first, last in IDEOGRAPHS)
    )
