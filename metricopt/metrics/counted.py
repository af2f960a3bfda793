"""Metrics of labels, computed from confusion counts."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError
from metricopt.metrics.base import METRICS, Metric, check_labels, check_outputs
from metricopt.metrics.confusion import (
    CountMetric,
    Counts,
    confusion_matrices,
    mean_over_present,
    ratio,
)


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


@METRICS.register("fpr")
class FalsePositiveRate(CountMetric):
    """Share of the negatives that are predicted positive: FP / (FP + TN), in [0, 1]."""

    name = "fpr"
    higher_is_better = False
    needs_two_classes = True
    binary = True

    def _scores(self, counts: Counts) -> Tensor:
        wrong = counts.false_positives
        return ratio(wrong, wrong + counts.true_negatives)[:, 1]


class CostWeightedError(Metric):
    """Mean cost of the predictions, in [0, 1]; with all costs 1, the error rate.

    It has no name in the registry, as it needs a matrix: a subclass that calls
    `super().__init__(matrix)` and sets `name` can be registered.

    Args:
        matrix: cost of predicting class j (column) for true class i (row), shape
            [C, C], in [0, 1], zero on the diagonal; [2, 2] for a single logit.

    Raises:
        ShapeError: if the matrix is not [C, C] with C >= 2.
        ConfigError: if a cost is outside [0, 1], or not 0 for a right prediction.
    """

    name = "cost-weighted-error"
    higher_is_better = False

    def __init__(self, matrix: Tensor) -> None:
        _check_matrix(matrix)
        self.matrix = matrix.detach().to(torch.float64, copy=True)

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(self._values(outputs[None], targets)[0])

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        classes = max(outputs.shape[-1], 2)
        if classes != len(self.matrix):
            raise ShapeError(
                f"metric {self.name!r} has costs of {len(self.matrix)} classes and "
                f"needs outputs of as many, got C = {outputs.shape[-1]}"
            )
        check_labels(self.name, targets, classes)
        check_outputs(self.name, outputs)
        return self.of_matrices(confusion_matrices(outputs, targets))

    def of_matrices(self, matrices: Tensor) -> Tensor:
        """Return the mean cost of confusion matrices [B, C, C], shape [B].

        It is differentiable in the counts, which need not be whole numbers.
        """
        costs = matrices * self.matrix.to(matrices.device)
        return costs.sum(-1).sum(-1) / matrices.sum(-1).sum(-1)


def _check_matrix(matrix: Tensor) -> None:
    shape = list(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise ShapeError(f"a cost matrix must be [C, C] with C >= 2, got {shape}")
    # Written so that NaN counts as outside.
    outside = matrix[~((matrix >= 0) & (matrix <= 1))]
    if outside.numel():
        raise ConfigError(f"costs must be in [0, 1], got {outside[0].item():g}")
    charged = matrix.diagonal().nonzero().flatten().tolist()
    if charged:
        raise ConfigError(
            f"right predictions must cost nothing, but class {charged[0]} has "
            f"{matrix[charged[0], charged[0]].item():g} on the diagonal"
        )
