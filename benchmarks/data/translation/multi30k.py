"""Multi30k: English descriptions of photographs with German translations.

Source: Elliott et al., 2016, task 1; descriptions are those of Flickr30k.
"""

from pathlib import Path
from typing import ClassVar

from benchmarks.data.files.download import download
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

PAGE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"


@TRANSLATION.register("multi30k-en-de")
class Multi30k(TextSource):
    """30,014 pairs to train on, those of training and validation; 1,000 of the test."""

    name = "multi30k-en-de"
    folder = "multi30k"
    expected = (30_014, 1_000)
    digest = "f0355b13302542b58e511a4f230e2b19a96988c23cd3272582be83d1bb3f1ddf"
    texts: ClassVar = {TRAIN: ("train", "val"), TEST: ("test_2016_flickr",)}
    endings = (".en", ".de")
    remedy = "delete what is damaged and run `./reproduce.sh data fetch multi30k-en-de`"

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Download the official files; the digest of their sentences is checked."""
        names = [f"{name}{self.packed}" for name in self._missing(folder)]
        return [
            download([f"{PAGE}/{name}"], folder / name, progress=progress)
            for name in names
        ]

    def _pairs(self, reader: Reader, text: str) -> tuple[Pair, ...]:
        sources, targets = (lines_of(reader, f"{text}{end}") for end in self.endings)
        return paired(reader.where(f"{text}.*"), sources, targets)
