"""F-measure with equal weight of precision and recall."""

from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts, mean_over_present, ratio


@METRICS.register("f1")
class F1(CountMetric):
    """F-measure of the positive class: 2 TP / (2 TP + FP + FN), in [0, 1].

    It is 0 where undefined: no positive label and no positive prediction.
    """

    name = "f1"
    higher_is_better = True
    needs_two_classes = True
    binary = True

    def _scores(self, counts: Counts) -> Tensor:
        return _f1(counts)[:, 1]


@METRICS.register("f-macro")
class MacroF1(CountMetric):
    """Unweighted mean of the F-measures of the classes in the labels."""

    name = "f-macro"
    higher_is_better = True
    needs_two_classes = True

    def _scores(self, counts: Counts) -> Tensor:
        return mean_over_present(_f1(counts), counts)


def _f1(counts: Counts) -> Tensor:
    hits = 2.0 * counts.true_positives
    return ratio(hits, hits + counts.false_positives + counts.false_negatives)
