"""Jaccard index: of the positive class, over classes, and the legacy variant."""

from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts, mean_over_present, ratio


@METRICS.register("jaccard")
class Jaccard(CountMetric):
    """Jaccard index of the positive class: TP / (TP + FP + FN), in [0, 1].

    It is 0 where undefined: no positive label and no positive prediction.
    """

    name = "jaccard"
    higher_is_better = True
    needs_two_classes = True
    binary = True

    def _scores(self, counts: Counts) -> Tensor:
        return _jaccard(counts)[:, 1]


@METRICS.register("jaccard-macro")
class MacroJaccard(CountMetric):
    """Unweighted mean of the Jaccard indices of the classes in the labels."""

    name = "jaccard-macro"
    higher_is_better = True
    needs_two_classes = True

    def _scores(self, counts: Counts) -> Tensor:
        return mean_over_present(_jaccard(counts), counts)


@METRICS.register("jaccard-legacy")
class LegacyJaccard(CountMetric):
    """Accuracy, under the name older software gave it: (sum of TP) / N, in [0, 1].

    scikit-learn before 0.23 had a `jaccard_similarity_score` that returned plain
    accuracy for one label per example. The JAC column published for the UCI tasks is
    close to 1 - MCR, more than the positive-class index can reach (F / (2 - F)), so
    this is the only variant to compare it with. To improve a Jaccard index, use
    `jaccard`.
    """

    name = "jaccard-legacy"
    higher_is_better = True

    def _scores(self, counts: Counts) -> Tensor:
        hits = counts.true_positives.sum(-1)
        return hits / (hits + counts.false_negatives.sum(-1))


def _jaccard(counts: Counts) -> Tensor:
    hits = counts.true_positives
    return ratio(hits, hits + counts.false_positives + counts.false_negatives)
