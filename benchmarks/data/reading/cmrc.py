"""CMRC 2018: span extraction from paragraphs of the Chinese Wikipedia.

Source: Cui et al., EMNLP 2019, CC BY-SA 4.0.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from benchmarks.data.files.download import download
from benchmarks.data.files.readers import Reader
from benchmarks.data.packed_source import PackedSource
from benchmarks.data.reading.contract import (
    READING,
    TEST,
    TRAIN,
    Question,
    ReadingSource,
    read_questions,
)

PAGE = "https://raw.githubusercontent.com/ymcui/cmrc2018/master/squad-style-data"


@READING.register("cmrc2018-dev")
class CMRCDev(PackedSource, ReadingSource):
    """3,219 questions of its validation file to train on, 1,000 of the trial file test.

    Attributes:
        files: name of the file of every part, without a compression suffix.
        left_out: questions that are empty in the official files.
    """

    name = "cmrc2018-dev"
    folder = "cmrc2018"
    expected = (3_219, 1_000)
    digest = "f9a025a9c3d95da5d8868876e0a083533f7503dec67573d88c0715304aeaba65"
    note = "the validation file is divided to train and observe; 10,142 more are theirs"
    files: ClassVar[Mapping[str, str]] = {TRAIN: "dev.json", TEST: "trial.json"}
    packed = ".xz"
    remedy = "put the official files there, or run tier smoke"
    left_out: ClassVar[tuple[str, ...]] = ("TRIAL_776_QUERY_4", "TRIAL_20_QUERY_0")

    @property
    def names(self) -> list[str]:
        """Names of all files, without the suffix of packed ones."""
        return [*self.files.values()]

    def _parts(self, reader: Reader) -> Mapping[str, tuple[Question, ...]]:
        parts: dict[str, tuple[Question, ...]] = {}
        first = 0
        for part, name in self.files.items():
            content, where = reader.read(name), reader.where(name)
            found = read_questions(content, where, first, self.left_out)
            parts[part] = tuple(found)
            first = found[-1].paragraph + 1
        return parts


@READING.register("cmrc2018")
class CMRC(CMRCDev):
    """10,142 questions of the training file, 3,219 of the validation file test."""

    name = "cmrc2018"
    expected = (10_142, 3_219)
    digest = ""
    note = ""
    files: ClassVar[Mapping[str, str]] = {TRAIN: "train.json", TEST: "dev.json"}
    remedy = "delete what is damaged and run `./reproduce.sh data fetch cmrc2018`"

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        """Download the official files, whose page names no checksums."""
        return [
            download(
                [f"{PAGE}/cmrc2018_{Path(name).stem}.json"],
                folder / name,
                progress=progress,
            )
            for name in self._missing(folder)
        ]
