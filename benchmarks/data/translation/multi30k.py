"""Multi30k: English descriptions of photographs with German translations.

Source: Elliott et al., 2016, task 1; descriptions are those of Flickr30k.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.download import download
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

PAGE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
FILES = {TRAIN: ("train", "val"), TEST: ("test_2016_flickr",)}
LANGUAGES = ("en", "de")
NAMES = [f"{n}.{code}" for own in FILES.values() for n in own for code in LANGUAGES]


@TRANSLATION.register("multi30k-en-de")
class Multi30k(TranslationSource):
    """30,014 pairs to train on, those of training and validation; 1,000 of the test."""

    name = "multi30k-en-de"
    folder = "multi30k"
    expected = (30_014, 1_000)
    digest = "f0355b13302542b58e511a4f230e2b19a96988c23cd3272582be83d1bb3f1ddf"

    def _is_there(self, folder: Path) -> bool:
        return all(found_file(folder, name) for name in NAMES)

    def _reader(self, folder: Path) -> Reader:
        require_files(self, folder, NAMES)
        return FolderReader(folder, remedy=f"put the official files into {folder}")

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Download the official files; the digest of their sentences is checked."""
        return [
            download([f"{PAGE}/{name}.gz"], folder / f"{name}.gz", progress=progress)
            for name in NAMES
            if not found_file(folder, name)
        ]

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        return {
            part: tuple(pair for name in names for pair in _pairs(reader, name))
            for part, names in FILES.items()
        }


def _pairs(reader: Reader, name: str) -> tuple[Pair, ...]:
    sources, targets = (lines_of(reader, f"{name}.{code}") for code in LANGUAGES)
    return paired(reader.where(f"{name}.*"), sources, targets)
