"""CoverType: predict the forest cover of a 30 m cell from cartographic features.

UCI Covertype (J. A. Blackard, D. J. Dean, C. W. Anderson 1998, CC BY 4.0): 10 numeric
features, 4 binary wilderness areas, 40 binary soil types, 7 classes.
"""

import io
from collections.abc import Sequence

import numpy as np

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.variants import DataFile, Variant

_NUMBERS_PER_ROW = 55
_UCI = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
)
_MIRROR = "https://ndownloader.figshare.com/files/5976039"


@DATASETS.register("covtype")
class CovType(DataSource):
    """The official 581,012 rows, or a sample of 80,000 of them.

    Inputs are the first 54 numbers of each row, unchanged, shape [N, 54]. Classes 1 to
    7 of the file are targets 0 to 6. The digest of the official file covers its first
    20,000 rows only; the number of rows and the class counts are checked for all.
    """

    name = "covtype"
    classes = (
        "spruce/fir",
        "lodgepole pine",
        "ponderosa pine",
        "cottonwood/willow",
        "aspen",
        "douglas-fir",
        "krummholz",
    )
    specs = (
        Variant(
            name="full",
            shape=(581012, 54),
            class_counts=(211840, 283301, 35754, 2747, 9493, 17367, 20510),
            digest="b159be732a043b943ba171e597ad3f1033cd43394521085913e94e95729fb5bc",
            digest_rows=20000,
            files=(DataFile("covtype.data", (_UCI, _MIRROR), suffix=".gz"),),
        ),
        Variant(
            name="sample80000",
            shape=(80000, 54),
            class_counts=(29168, 39008, 4923, 378, 1307, 2392, 2824),
            digest="60b3a478e1bc5eded84872582adf17d60aee971837c98bde38223ce7c181fae5",
            files=(DataFile("covtype_sample80000.data"),),
            note="80,000 of the 581,012 official rows, in the official class "
            "proportions; results are not comparable digit for digit",
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        # Imported here because it takes a second and a cached load does not need it.
        import pandas as pd

        # pandas reads these 75 MB eight times as fast as numpy.loadtxt.
        frame = pd.read_csv(io.BytesIO(contents[0]), header=None, dtype=np.int32)
        table = frame.to_numpy()
        if table.shape[1] != _NUMBERS_PER_ROW:
            raise ValueError(f"expected 55 numbers per row, got {table.shape[1]}")
        native = table[:, -1]
        if native.min() < 1 or native.max() > len(self.classes):
            found = f"{native.min()} to {native.max()}"
            raise ValueError(f"expected classes 1 to 7, got {found}")
        return table[:, :-1], native - 1
