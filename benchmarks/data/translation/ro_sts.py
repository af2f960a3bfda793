"""RO-STS: English sentences with Romanian translations.

Source: Dumitrescu et al., NeurIPS 2021 (datasets and benchmarks), CC BY-SA 4.0.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.readers import FolderReader, Reader
from benchmarks.data.translation.contract import (
    TEST,
    TRAIN,
    TRANSLATION,
    Pair,
    TranslationSource,
    found_file,
    lines_of,
    paired,
    require_files,
)
from metricopt.errors import DataError

FILES = {TRAIN: ("train.tsv", "dev.tsv"), TEST: ("test.tsv",)}
NAMES = [name for names in FILES.values() for name in names]


@TRANSLATION.register("ro-sts-en-ro")
class RoStsEnRo(TranslationSource):
    """13,483 pairs to train on, 2,298 of the test, without repeats between the two.

    The official parts share hundreds of sentences. Files hold one pair a line, English
    and Romanian with a tab between them.
    """

    name = "ro-sts-en-ro"
    folder = "en_ro"
    expected = (13_483, 2_298)
    digest = "692cd9a423968a03b168a60e27f0a60835c462ab007ed7572babc31a1c65d37f"
    note = "without the sentences that the official parts share; no download"

    def _is_there(self, folder: Path) -> bool:
        return all(found_file(folder, name) for name in NAMES)

    def _reader(self, folder: Path) -> Reader:
        require_files(self, folder, NAMES)
        return FolderReader(folder, remedy=f"put the right files into {folder}")

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        return {
            part: tuple(pair for name in names for pair in _pairs(reader, name))
            for part, names in FILES.items()
        }


@TRANSLATION.register("ro-sts-ro-en")
class RoStsRoEn(RoStsEnRo):
    """The same pairs in the other direction."""

    name = "ro-sts-ro-en"
    digest = "fa14b91d3721c886c41b08381367f617b6f37481613aefff928b375f179dcb4d"
    backwards = True


def _pairs(reader: Reader, name: str) -> tuple[Pair, ...]:
    where, rows = reader.where(name), lines_of(reader, name)
    fields = [line.split("\t") for line in rows]
    for number, each in enumerate(fields, start=1):
        if len(each) != 2:
            raise DataError(
                f"{where} must have two sentences with a tab between them in a line, "
                f"got {len(each)} in line {number}"
            )
    return paired(where, [one for one, _ in fields], [other for _, other in fields])
