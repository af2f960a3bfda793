"""Verification of listed pairs: examples 2i and 2i + 1 are the two of a pair."""

import torch
from torch import Tensor

from benchmarks.runs.spec import SUITE_METRICS
from metricopt.errors import DataError, require_ranges
from metricopt.metrics.base import Metric, check_integers
from metricopt.metrics.neighbours import of_length_one
from metricopt.metrics.verification import fold_accuracy

LISTED_PAIRS = "pair-verification"


@SUITE_METRICS.register("pair-verification")
class PairVerification(Metric):
    """Accuracy of telling whether the two of a pair are of one class, in [0, 1].

    Pairs come in folds of equal size, one after the other. Embeddings [N, E] are
    compared by cosine; the threshold of a fold is the best on the others.

    Args:
        folds: number of folds, at least 2.

    Raises:
        ConfigError: if there are fewer folds.
        DataError: by `value`, if the examples are not that many equal folds of pairs.

    Source: the protocol of LFW, G. B. Huang et al., UMass 07-49, 2007.
    """

    name = LISTED_PAIRS
    higher_is_better = True
    needs_two_classes = True
    reads = "embeddings"

    def __init__(self, folds: int = 10) -> None:
        require_ranges(LISTED_PAIRS, {"folds": folds}, folds=">= 2")
        self.folds = folds

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        labels = check_integers(self.name, targets)
        pairs, left = divmod(len(labels), 2)
        if left or pairs % self.folds:
            raise DataError(
                f"metric {self.name!r} needs {self.folds} folds of as many pairs each, "
                f"got {len(labels)} examples"
            )
        unit = of_length_one(outputs.detach().double(), self.name)
        similarities = (unit[::2] * unit[1::2]).sum(1)
        folds = torch.arange(pairs, device=unit.device) // (pairs // self.folds)
        same = (labels[::2] == labels[1::2]).to(unit.device)
        return fold_accuracy(similarities, same, folds)
