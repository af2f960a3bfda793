"""RO-STS: English sentences with Romanian translations.

Source: Dumitrescu et al., NeurIPS 2021 (datasets and benchmarks), CC BY-SA 4.0.
"""

from typing import ClassVar

from benchmarks.data.files.readers import Reader
from benchmarks.data.translation.contract import (
    TEST,
    TRAIN,
    TRANSLATION,
    Pair,
    TextSource,
    lines_of,
    paired,
)
from metricopt.errors import DataError


@TRANSLATION.register("ro-sts-en-ro")
class RoStsEnRo(TextSource):
    """13,483 pairs to train on, 2,298 of the test, without repeats between the two.

    The official parts share hundreds of sentences. Files hold one pair a line, English
    and Romanian with a tab between them.
    """

    name = "ro-sts-en-ro"
    folder = "en_ro"
    expected = (13_483, 2_298)
    digest = "692cd9a423968a03b168a60e27f0a60835c462ab007ed7572babc31a1c65d37f"
    note = "without the sentences that the official parts share; no download"
    texts: ClassVar = {TRAIN: ("train", "dev"), TEST: ("test",)}
    endings = (".tsv",)

    def _pairs(self, reader: Reader, text: str) -> tuple[Pair, ...]:
        name = f"{text}{self.endings[0]}"
        where, rows = reader.where(name), lines_of(reader, name)
        fields = [line.split("\t") for line in rows]
        for number, each in enumerate(fields, start=1):
            if len(each) != 2:
                raise DataError(
                    f"{where} must have two sentences with a tab between them in a "
                    f"line, got {len(each)} in line {number}"
                )
        return paired(where, [one for one, _ in fields], [other for _, other in fields])


@TRANSLATION.register("ro-sts-ro-en")
class RoStsRoEn(RoStsEnRo):
    """The same pairs in the other direction."""

    name = "ro-sts-ro-en"
    digest = "fa14b91d3721c886c41b08381367f617b6f37481613aefff928b375f179dcb4d"
    backwards = True
