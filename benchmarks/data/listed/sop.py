"""Stanford Online Products: 120,053 photographs of 22,634 products from eBay.

Source: Song et al., CVPR 2016.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.data.files.download import download
from benchmarks.data.files.readers import Reader
from benchmarks.data.listed.contract import LISTED, ListedSource, opened, packed_or_not
from metricopt.errors import DataError

ARCHIVE, UNPACKED = "Stanford_Online_Products.zip", "Stanford_Online_Products"
ADDRESSES = (
    "http://ftp.cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
    "https://drive.usercontent.google.com/download?"
    "id=1TclrpQOF_ullUP99wk_gjGN8pKvtErG8&export=download&authuser=0&confirm=t",
)
"""Stanford, then github.com/rksltnl/Deep-Metric-Learning-CVPR16."""
MD5 = "7f73d41a2f44250d4779881525aea32e"


@LISTED.register("sop")
class StanfordOnlineProducts(ListedSource):
    """59,551 images of 11,318 classes train, 60,502 of 11,316 others test.

    The archive, or the folder it unpacks to; the folder is preferred.
    """

    name = "sop"
    folder = "sop"
    expected = (59_551, 120_053, 11_318, 22_634)

    def _fetch(self, folder: Path, progress: bool) -> list[Path]:
        path = folder / ARCHIVE
        try:
            return [download(ADDRESSES, path, md5=MD5, progress=progress)]
        except DataError as error:
            raise DataError(f"{error}; {_by_hand(folder)}") from error

    def _published(self, folder: Path) -> Mapping[Path, str]:
        place = packed_or_not(folder, ARCHIVE, UNPACKED)
        return {place: MD5} if place is not None and place.is_file() else {}

    def _is_there(self, folder: Path) -> bool:
        return packed_or_not(folder, ARCHIVE, UNPACKED) is not None

    def _reader(self, folder: Path) -> Reader:
        place = packed_or_not(folder, ARCHIVE, UNPACKED)
        if place is None:
            raise DataError(
                f"sop needs {ARCHIVE}, or what it holds, in {folder}; run "
                f"`./reproduce.sh data fetch sop`, or {_by_hand(folder)}"
            )
        return opened(place, self.anew(place))


def _by_hand(folder: Path) -> str:
    return (
        "by hand: open https://github.com/rksltnl/Deep-Metric-Learning-CVPR16, follow "
        f"its link to the data set, confirm, and put {ARCHIVE} into {folder}"
    )
