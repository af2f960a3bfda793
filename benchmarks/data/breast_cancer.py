"""Breast cancer: predict from cell nuclei whether a tumour is benign.

UCI Breast Cancer Wisconsin Diagnostic (W. Wolberg, W. Street, O. Mangasarian 1993, CC
BY 4.0), embedded in scikit-learn.
"""

from collections.abc import Sequence

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.variants import Variant


@DATASETS.register("breast_cancer")
class BreastCancer(DataSource):
    """All 569 examples of 30 measurements in native units, shape [569, 30]."""

    name = "breast_cancer"
    classes = ("malignant", "benign")
    specs = (
        Variant(
            name="full",
            shape=(569, 30),
            class_counts=(212, 357),
            digest="d74d253234bd2f851ead53bbbf95ffa4338920faf5e165eb90f841eac2d9847c",
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        # Imported here because it takes seconds and a cached load does not need it.
        from sklearn.datasets import load_breast_cancer

        inputs, targets = load_breast_cancer(return_X_y=True)
        return inputs, targets
