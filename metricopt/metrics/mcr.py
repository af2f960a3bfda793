"""Misclassification rate."""

from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts


@METRICS.register("mcr")
class MisclassificationRate(CountMetric):
    """Share of wrong labels: 1 - (sum over classes of TP) / N, in [0, 1]."""

    name = "mcr"
    higher_is_better = False

    def _scores(self, counts: Counts) -> Tensor:
        wrong = counts.false_negatives.sum(-1)
        return wrong / (counts.true_positives.sum(-1) + wrong)
