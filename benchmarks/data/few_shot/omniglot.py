"""Omniglot: handwritten characters of many alphabets, 20 drawings of each.

The whole set has 1,623 characters of 50 alphabets. Its two small background sets, which
overlap, have 242 characters of eight alphabets together.

Source: Lake, Salakhutdinov and Tenenbaum, Science 2015.
Differs: learners see drawings at 28 pixels by Pillow's bicubic filter, as all images
here; the public code of MAML asks for Lanczos's.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

from benchmarks.data.few_shot.contract import (
    FEW_SHOT,
    TEST,
    TRAIN,
    FewShotSource,
    Members,
)
from benchmarks.data.files.archives import ZipReader
from benchmarks.data.files.download import download
from benchmarks.data.files.readers import JoinedReader, Reader, refuse
from metricopt.errors import DataError

PAGE = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
TEST_ALPHABETS = ("Greek", "Latin")
"""Alphabets of the small sets whose characters are for testing."""


@FEW_SHOT.register("omniglot")
class Omniglot(FewShotSource):
    """1,623 characters, 32,460 drawings; nothing says which are for testing.

    Attributes:
        archives: md5 of the official archives, by name.
    """

    name = "omniglot"
    folder = "omniglot"
    expected = (32_460, 1_623)
    counts = "{:,} images of {:,} classes"
    side = 28
    ink = True
    archives: ClassVar[Mapping[str, str]] = {
        "images_background": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation": "6b91aef0f799c5bb55b94e3f2daec811",
    }

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        return [
            download([f"{PAGE}/{path.name}"], path, md5=md5, progress=progress)
            for path, md5 in self._paths(folder).items()
            if not path.is_file()
        ]

    def _published(self, folder: Path) -> Mapping[Path, str]:
        return {
            path: md5 for path, md5 in self._paths(folder).items() if path.is_file()
        }

    def _is_there(self, folder: Path) -> bool:
        return all(path.is_file() for path in self._paths(folder))

    def _reader(self, folder: Path) -> Reader:
        paths = self._paths(folder)
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise DataError(
                f"{self.name} needs {' and '.join(missing)} in {folder}; run "
                f"`./reproduce.sh data fetch {self.name}`"
            )
        remedy = self.anew(*paths)
        # Greek and Latin are in both small sets, with the same files.
        return JoinedReader(
            [ZipReader(path, f"{path.stem}/", remedy=remedy) for path in paths]
        )

    def _paths(self, folder: Path) -> dict[Path, str]:
        return {folder / f"{name}.zip": md5 for name, md5 in self.archives.items()}

    def _members(self, reader: Reader) -> tuple[Members, Mapping[str, str]]:
        members: dict[str, list[str]] = defaultdict(list)
        misplaced = []
        for path in sorted(reader.sizes):
            pieces = PurePosixPath(path).parts
            if len(pieces) == 3 and path.endswith(".png"):
                members["/".join(pieces[:2])].append(path)
            elif path.endswith(".png"):
                misplaced.append(path)
        refuse(self.name, "images outside ALPHABET/CHARACTER", misplaced)
        return members, self._parts(members)

    def _parts(self, members: Members) -> Mapping[str, str]:
        return {}


@FEW_SHOT.register("omniglot-small")
class OmniglotSmall(Omniglot):
    """192 characters of six alphabets train, 50 of Greek and Latin test."""

    name = "omniglot-small"
    folder = "omniglot_small"
    expected = (4_840, 192, 0, 50)
    counts = FewShotSource.counts
    digest = "8d825caed3edb690355826b733e7d59fc25a7470f6c9025c2d47a64d9f119c47"
    note = "242 of 1,623 characters; alphabets to test are not those of any publication"
    archives: ClassVar[Mapping[str, str]] = {
        "images_background_small1": "e704a628b5459e08445c13499850abc4",
        "images_background_small2": "b75a71a51d3b13f821f212756fe481fd",
    }

    def _parts(self, members: Members) -> Mapping[str, str]:
        alphabets = {name: name.partition("/")[0] for name in members}
        return {
            name: TEST if alphabet in TEST_ALPHABETS else TRAIN
            for name, alphabet in alphabets.items()
        }
