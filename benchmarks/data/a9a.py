"""A9A: predict from census data whether an income exceeds 50,000 dollars.

LIBSVM's binarised form of UCI Adult (B. Becker and R. Kohavi 1996, CC BY 4.0): 123
binary features, 23.9 percent positive.
"""

import io
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.variants import DataFile, Variant

_ADDRESS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_WIDTHS = {
    "age": 5,
    "workclass": 8,
    "weight": 5,
    "education": 16,
    "years of education": 5,
    "marital status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital gain": 2,
    "capital loss": 2,
    "hours": 5,
    "country": 41,
}
ATTRIBUTES = {
    name: slice(end - width, end)
    for (name, width), end in zip(
        _WIDTHS.items(), accumulate(_WIDTHS.values()), strict=True
    )
}
"""Columns of the inputs that hold the values of an attribute of UCI Adult, one of them
1; all 0 where it is missing. Age, weight and hours are cut at their quintiles."""


@DATASETS.register("a9a")
class A9A(DataSource):
    """All 48,842 examples: 32,561 of the file `a9a`, then 16,281 of `a9a.t`.

    Inputs are 0 or 1, shape [48842, 123]. Label +1 of the files is target 1.
    """

    name = "a9a"
    classes = ("at most 50K", "more than 50K")
    specs = (
        Variant(
            name="full",
            shape=(48842, 123),
            class_counts=(37155, 11687),
            digest="c862428d3343bc65524b069c4322c107423f9c51d7f242de6ca618c43cb27b9f",
            files=(
                DataFile("a9a", (_ADDRESS + "a9a",)),
                DataFile("a9a.t", (_ADDRESS + "a9a.t",)),
            ),
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        # Imported here because it takes seconds and a cached load does not need it.
        from sklearn.datasets import load_svmlight_file

        parts = [
            load_svmlight_file(io.BytesIO(text), n_features=123) for text in contents
        ]
        inputs = np.concatenate([part[0].toarray() for part in parts])
        return inputs, np.concatenate([part[1] for part in parts]) > 0
