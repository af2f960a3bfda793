"""Geometric mean of the recalls."""

import torch
from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts, mean_over_present, ratio


@METRICS.register("g-mean")
class GMean(CountMetric):
    """(Product of the K recalls)^(1/K) over the K classes in the labels, in [0, 1].

    It is 0 as soon as one class that occurs is never recognised.
    """

    name = "g-mean"
    higher_is_better = True
    needs_two_classes = True

    def _scores(self, counts: Counts) -> Tensor:
        hits = counts.true_positives
        # In logarithms, because a product over many classes would underflow.
        logs = torch.log(ratio(hits, hits + counts.false_negatives))
        return torch.exp(mean_over_present(logs, counts))
