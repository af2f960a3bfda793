"""A data set of three rows, for tests."""

from collections.abc import Sequence

import numpy as np

from benchmarks.data.contract import Arrays, DataSource
from benchmarks.data.files.variants import DataFile, Variant, array_digest

TEXT = b"1 0\n2 1\n3 1\n"
INPUTS = np.array([[1.0], [2.0], [3.0]], np.float32)
TARGETS = np.array([0, 1, 1])


class Toy(DataSource):
    """Three rows `input target`, official or in a local form."""

    name = "toy"
    classes = ("low", "high")
    specs = (
        Variant(
            name="full",
            shape=(3, 1),
            class_counts=(1, 2),
            digest=array_digest(INPUTS, TARGETS),
            files=(DataFile("toy.data"),),
        ),
        Variant(
            name="small",
            shape=(2, 1),
            class_counts=(1, 1),
            digest=array_digest(INPUTS[:1], TARGETS[:1]),
            digest_rows=1,
            files=(DataFile("small.data"),),
            note="two rows of three",
        ),
    )
    parsed = 0

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        type(self).parsed += 1
        rows = [line.split() for line in contents[0].splitlines()]
        table = np.array(rows, float)
        return table[:, :1], table[:, 1]


def downloadable(toy, *urls):
    """Give the official variant of a toy an address."""
    files = (DataFile("toy.data", urls, suffix=".gz"),)
    official = Variant(**{**vars(toy.specs[0]), "files": files})
    toy.specs = (official, toy.specs[1])
    return toy


def covtype_row(cover: int, numbers: int = 54) -> str:
    return ",".join(["1"] * numbers + [str(cover)]) + "\n"
