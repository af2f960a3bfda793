"""Digits: 8x8 images of handwritten digits.

The test part of UCI Optical Recognition of Handwritten Digits (E. Alpaydin and C.
Kaynak 1998, CC BY 4.0), embedded in scikit-learn.
"""

from collections.abc import Sequence

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.variants import Variant


@DATASETS.register("digits")
class Digits(DataSource):
    """All 1,797 images, grey values in [0, 1], shape [1797, 1, 8, 8]."""

    name = "digits"
    classes = tuple("0123456789")
    specs = (
        Variant(
            name="full",
            shape=(1797, 1, 8, 8),
            class_counts=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
            digest="dc03189b4746b9956cbef3f3f059983e30dbf36fc76c971951ba57233a7c7071",
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        # Imported here because it takes seconds and a cached load does not need it.
        from sklearn.datasets import load_digits

        pixels, targets = load_digits(return_X_y=True)
        return pixels.reshape(-1, 1, 8, 8) / 16, targets
