"""Error of the class that is recognised worst."""

from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts, ratio


@METRICS.register("worst-class-error")
class WorstClassError(CountMetric):
    """Greatest FN / (TP + FN) of the classes that occur in the labels, in [0, 1]."""

    name = "worst-class-error"
    higher_is_better = False
    needs_two_classes = True

    def _scores(self, counts: Counts) -> Tensor:
        missed = counts.false_negatives
        return ratio(missed, counts.true_positives + missed).amax(-1)
