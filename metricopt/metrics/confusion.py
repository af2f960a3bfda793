"""Metrics computed from confusion counts, vectorised over rows.

They do not call scikit-learn, whose input checks cost milliseconds per call; a query
here takes microseconds. The tests compare them with scikit-learn.
"""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.errors import ShapeError
from metricopt.metrics.base import Metric, check_labels, check_outputs


class Counts(NamedTuple):
    """One-versus-rest confusion counts of every class, float64, each [B, C].

    A single logit counts as two classes. For each class, every example is in one of
    the four counts.
    """

    true_positives: Tensor
    false_positives: Tensor
    false_negatives: Tensor
    true_negatives: Tensor


class CountMetric(Metric):
    """A metric of labels, computed from confusion counts.

    Attributes:
        binary: whether only two classes (one or two logits) make sense.
    """

    binary: bool = False

    def of_matrices(self, matrices: Tensor) -> Tensor:
        """Return the metric of confusion matrices [B, K, K], in native units, [B].

        Counts are by label and decision. They need not be whole numbers, and the metric
        is differentiable in them.
        """
        hits = matrices.diagonal(dim1=1, dim2=2)
        decided, labelled = matrices.sum(1), matrices.sum(2)
        rest = matrices.sum((1, 2))[:, None] - decided - labelled + hits
        return self._scores(Counts(hits, decided - hits, labelled - hits, rest))

    @abstractmethod
    def _scores(self, counts: Counts) -> Tensor:
        """Return the metric of every row of the counts [B, C], shape [B]."""

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(self._values(outputs[None], targets)[0])

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        classes = max(outputs.shape[-1], 2)
        if self.binary and classes > 2:
            raise ShapeError(
                f"metric {self.name!r} is binary and needs C = 1 or 2 outputs per "
                f"example, got C = {classes}"
            )
        check_labels(self.name, targets, classes)
        check_outputs(self.name, outputs)
        return self._scores(confusion_counts(outputs, targets))


def predict_labels(outputs: Tensor) -> Tensor:
    """Return the predicted labels, shape [..., N], of outputs [..., N, C].

    A single logit predicts 1 when it is > 0 (probability > 0.5). Class logits
    predict the class of the greatest. On ties the first class is predicted.
    """
    if outputs.shape[-1] <= 2:
        return _predicts_positive(outputs).long()
    return outputs.argmax(-1)


def confusion_counts(outputs: Tensor, targets: Tensor) -> Counts:
    """Count hits and errors of every row and class, each [B, max(C, 2)].

    Outputs are [B, N, C] without NaN, labels [N] in [0, max(C, 2)).
    """
    if outputs.shape[-1] <= 2:
        hits, predicted, labelled = _binary_totals(_predicts_positive(outputs), targets)
    else:
        hits, predicted, labelled = _class_totals(outputs, targets.long())
    return Counts(
        hits,
        predicted - hits,
        labelled - hits,
        len(targets) - predicted - labelled + hits,
    )


def confusion_matrices(outputs: Tensor, targets: Tensor) -> Tensor:
    """Count the predictions of every row by label and class, [B, K, K], float64.

    Outputs are [B, N, C] without NaN, labels [N] in [0, K), where K = max(C, 2).
    """
    rows, classes = len(outputs), max(outputs.shape[-1], 2)
    row = torch.arange(rows, device=outputs.device)[:, None]
    cells = (row * classes + targets) * classes + predict_labels(outputs)
    counts = _tally(cells.flatten(), rows * classes**2)
    return counts.reshape(rows, classes, classes)


def class_shares(targets: Tensor, classes: int) -> Tensor:
    """Return the share of every class in labels [N], float64, shape [classes]."""
    counts = torch.bincount(targets.long().cpu(), minlength=classes)
    return counts.double() / len(targets)


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divide counts, with 0 / 0 = 0."""
    return numerator / denominator.clamp(min=1.0)


def mean_over_present(scores: Tensor, counts: Counts) -> Tensor:
    """Average class scores [B, C] over the classes that occur in the labels."""
    present = counts.true_positives + counts.false_negatives > 0
    return torch.where(present, scores, 0.0).sum(-1) / present.sum(-1)


def _predicts_positive(outputs: Tensor) -> Tensor:
    if outputs.shape[-1] == 1:
        return outputs[..., 0] > 0
    # Equal to the arg max, ties included, and much faster.
    return outputs[..., 1] > outputs[..., 0]


def _binary_totals(predicted: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # One pass over booleans; everything else follows from three totals.
    positive = targets == 1
    hits = (predicted & positive).sum(-1).double()
    chosen = predicted.sum(-1).double()
    labelled = positive.sum().double()
    examples = len(targets)
    return (
        torch.stack([examples - labelled - chosen + hits, hits], -1),
        torch.stack([examples - chosen, chosen], -1),
        torch.stack([examples - labelled, labelled]),
    )


def _class_totals(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, _, classes = outputs.shape
    predicted = outputs.argmax(-1)
    cells = predicted + classes * torch.arange(rows, device=outputs.device)[:, None]
    shape = (rows, classes)
    return (
        _tally(cells[predicted == targets], rows * classes).reshape(shape),
        _tally(cells.flatten(), rows * classes).reshape(shape),
        _tally(targets, classes),
    )


def _tally(indices: Tensor, bins: int) -> Tensor:
    return torch.bincount(indices, minlength=bins).double()
