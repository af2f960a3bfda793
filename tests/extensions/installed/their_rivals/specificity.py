"""Share of negatives that are called negative."""

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, ratio


@METRICS.register("specificity")
class Specificity(CountMetric):
    """True negative rate: TN / (TN + FP), in [0, 1]."""

    name = "specificity"
    higher_is_better = True
    binary = True

    def _scores(self, counts):
        negatives = counts.true_negatives + counts.false_positives
        return ratio(counts.true_negatives, negatives)[:, 1]
