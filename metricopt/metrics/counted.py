"""Metrics of labels, computed from confusion counts."""

import torch
from torch import Tensor

from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, Counts, mean_over_present, ratio


@METRICS.register("mcr")
class MisclassificationRate(CountMetric):
    """Share of wrong labels: 1 - (sum over classes of TP) / N, in [0, 1]."""

    name = "mcr"
    higher_is_better = False

    def _scores(self, counts: Counts) -> Tensor:
        wrong = counts.false_negatives.sum(-1)
        return wrong / (counts.true_positives.sum(-1) + wrong)


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


@METRICS.register("worst-class-error")
class WorstClassError(CountMetric):
    """Greatest FN / (TP + FN) of the classes that occur in the labels, in [0, 1]."""

    name = "worst-class-error"
    higher_is_better = False
    needs_two_classes = True

    def _scores(self, counts: Counts) -> Tensor:
        missed = counts.false_negatives
        return ratio(missed, counts.true_positives + missed).amax(-1)
