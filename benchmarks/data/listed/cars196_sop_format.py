"""A subset of Cars196 in the layout of Stanford Online Products, for runs on a CPU.

Ten official training images of each of 160 classes, at most 96 pixels wide and not cut
to the cars. Classes 1 to 98 train, 99 to 160 test. No number on it is one of Cars196.
"""

from pathlib import Path

from benchmarks.data.files.readers import Reader
from benchmarks.data.listed.contract import LISTED, ListedSource, opened, packed_or_not
from benchmarks.data.read_source import SubsetSource


@LISTED.register("cars196-sop-format")
class Cars196SopFormat(SubsetSource, ListedSource):
    """980 images of 98 classes train, 620 of 62 classes test."""

    name = "cars196-sop-format"
    folder = "cars196_sop_subset"
    archive = "cars196_sop_subset.zip"
    expected = (980, 1_600, 98, 160)
    digest = "062a2d25dd8aba7bd35c357172f97423305d25c9c278fecbf8280eaa90a92781"
    note = "160 classes of Cars196 with 10 images each, at most 96 pixels wide"

    def _is_there(self, folder: Path) -> bool:
        return packed_or_not(folder, self.archive) is not None

    def _opened(self, folder: Path) -> Reader:
        place = packed_or_not(folder, self.archive)
        assert place is not None
        return opened(place, self.anew(place))
