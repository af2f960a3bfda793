"""Made-up sentences of two made-up languages, for the smoke tier; no file is needed."""

import random
from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.readers import Reader
from benchmarks.data.read_source import DrawnSource
from benchmarks.data.translation.contract import (
    TEST,
    TRAIN,
    TRANSLATION,
    Pair,
    TranslationSource,
    paired,
)

COUNTS = {TRAIN: 256, TEST: 64}
NOUNS = {"boat": "nave", "cat": "gatto", "dog": "cane", "tree": "pianta"}
COLOURS = {"red": "rossa", "green": "verde", "old": "antica", "small": "piccola"}
VERBS = {"sees": "vede", "finds": "trova", "likes": "ama"}


@TRANSLATION.register("made-sentences")
class MadeSentences(DrawnSource, TranslationSource):
    """256 pairs to train on, 64 of the test. Adjectives stand behind in the target."""

    name = "made-sentences"
    folder = "made-sentences"
    expected = (COUNTS[TRAIN], COUNTS[TEST])
    note = "made up by a program"

    def _reader(self, folder: Path) -> Reader:
        return _Made()

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        found = {}
        for part, count in COUNTS.items():
            chance = random.Random(part)
            sentences = [_sentence(chance) for _ in range(count)]
            found[part] = paired(part, *zip(*sentences, strict=True))
        return found


class _Made(Reader):
    """There is no file to read."""

    @property
    def sizes(self) -> Mapping[str, int]:
        return {}

    def read(self, path: str) -> bytes:
        return b""


def _sentence(chance: random.Random) -> tuple[str, str]:
    first, second = (_thing(chance) for _ in range(2))
    verb = chance.choice(sorted(VERBS))
    return (
        f"the {first[0]} {verb} the {second[0]}.",
        f"la {first[1]} {VERBS[verb]} la {second[1]}.",
    )


def _thing(chance: random.Random) -> tuple[str, str]:
    """Return a noun with no, one or two adjectives, in both languages."""
    noun = chance.choice(sorted(NOUNS))
    colours = chance.sample(sorted(COLOURS), chance.randint(0, 2))
    ours = " ".join([*colours, noun])
    theirs = " ".join([NOUNS[noun], *(COLOURS[colour] for colour in colours)])
    return ours, theirs
