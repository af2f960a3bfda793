"""WMT16 English-Romanian: Europarl and SETIMES2 to train on, news of 2016 the test.

Source: Bojar et al., WMT 2016. Networks that write all pieces at once are compared on
it since Lee et al., EMNLP 2018.
"""

import html
import re
import tarfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.download import download
from benchmarks.data.files.readers import JoinedReader, Reader, check_size, told
from benchmarks.data.translation.contract import (
    TEST,
    TRAIN,
    TRANSLATION,
    Pair,
    TranslationSource,
    lines_of,
    paired,
)
from metricopt.errors import DataError

EUROPARL, SETIMES, NEWS = "training-parallel-ep-v8.tgz", "en-ro.txt.zip", "test.tgz"
PAGES = {
    EUROPARL: f"https://data.statmt.org/wmt16/translation-task/{EUROPARL}",
    SETIMES: f"https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/{SETIMES}",
    NEWS: f"https://data.statmt.org/wmt16/translation-task/{NEWS}",
}
MD5 = {NEWS: "3d809cd0c2c86adb2c67034d15c4e446"}
"""As sacrebleu has it; the other pages name no checksums."""
TEXTS = {
    "training-parallel-ep-v8/europarl-v8.ro-en": 399_375,
    "SETIMES.en-ro": 213_047,
}
"""Lines of the files to train on, whose names end in the language."""
SOURCE = "test/newstest2016-enro-src.en.sgm"
REFERENCE = "test/newstest2016-enro-ref.ro.sgm"
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)


@TRANSLATION.register("wmt16-en-ro")
class WMT16EnRo(TranslationSource):
    """612,422 pairs to train on less those with an empty side, and 1,999 of the test.

    Attributes:
        texts: lines of the files to train on.
    """

    name = "wmt16-en-ro"
    folder = "wmt16_en_ro"
    texts: ClassVar[Mapping[str, int]] = TEXTS
    expected = (sum(TEXTS.values()), 1_999)

    def _is_there(self, folder: Path) -> bool:
        return all((folder / name).is_file() for name in PAGES)

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        return [
            download([page], folder / name, md5=MD5.get(name), progress=progress)
            for name, page in PAGES.items()
            if not (folder / name).is_file()
        ]

    def _published(self, folder: Path) -> Mapping[Path, str]:
        return {folder / name: md5 for name, md5 in MD5.items()}

    def _reader(self, folder: Path) -> Reader:
        missing = [name for name in PAGES if not (folder / name).is_file()]
        if missing:
            raise DataError(
                f"{self.name} needs {' and '.join(missing)} in {folder}; run "
                f"`./reproduce.sh data fetch {self.name}`"
            )
        remedy = self.anew(folder)
        marker = f"{[*self.texts][1]}.en"
        return JoinedReader(
            [
                _Unpacking(folder / EUROPARL, remedy=remedy),
                ZipReader(folder / SETIMES, marker, remedy=remedy),
                _Unpacking(folder / NEWS, remedy=remedy),
            ]
        )

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Pair, ...]]:
        pairs = [
            p for name, count in self.texts.items() for p in _pairs(reader, name, count)
        ]
        sources, targets = (_segments(reader, name) for name in (SOURCE, REFERENCE))
        where = reader.where(REFERENCE)
        return {TRAIN: tuple(pairs), TEST: paired(where, sources, targets)}

    def _check(self, found: tuple[int, ...], digest: str) -> None:
        """Check the test alone: lines to train on are counted as they are read."""
        super()._check((self.expected[0], found[1]), digest)


@TRANSLATION.register("wmt16-ro-en")
class WMT16RoEn(WMT16EnRo):
    """The same pairs in the other direction."""

    name = "wmt16-ro-en"
    backwards = True


def _pairs(reader: Reader, name: str, count: int) -> tuple[Pair, ...]:
    """Return the pairs of two files without those that have an empty side."""
    english, romanian = (lines_of(reader, f"{name}.{code}") for code in ("en", "ro"))
    if not len(english) == len(romanian) == count:
        raise DataError(
            f"{reader.where(name)} must have {count:,} lines in both languages, got "
            f"{len(english):,} and {len(romanian):,}"
        )
    both = zip(english, romanian, strict=True)
    kept = [pair for pair in both if all(text.strip() for text in pair)]
    return paired(reader.where(name), [e for e, _ in kept], [r for _, r in kept])


def _segments(reader: Reader, name: str) -> list[str]:
    return [html.unescape(found) for found in SEGMENT.findall(reader.text(name))]


class _Unpacking(Reader):
    """A tar file under gzip, read from its beginning for every file."""

    def __init__(self, path: Path, *, remedy: str) -> None:
        self._path, self.remedy = path, remedy

    @cached_property
    def sizes(self) -> Mapping[str, int]:  # type: ignore[override]
        """Bytes of every file, by its path."""
        try:
            with tarfile.open(self._path, "r:gz") as archive:
                return {each.name: each.size for each in archive if each.isfile()}
        except Exception as error:  # tarfile and gzip raise many kinds
            raise self._unread(error) from error

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return f"{path} of {self._path}"

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        check_size(self.sizes.get(path, 0), self.where(path))
        try:
            with tarfile.open(self._path, "r:gz") as archive:
                file = archive.extractfile(path)
                assert file is not None
                return file.read()
        except Exception as error:  # tarfile and gzip raise many kinds
            raise self._unread(error) from error

    def _unread(self, error: Exception) -> DataError:
        return DataError(f"{self._path} cannot be read ({told(error)}); {self.remedy}")
