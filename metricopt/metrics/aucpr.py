"""Area under the precision-recall curve, as step-wise average precision."""

import torch
from torch import Tensor

from metricopt.metrics.base import METRICS, Metric, check_labels, check_outputs


@METRICS.register("aucpr")
class AveragePrecision(Metric):
    """Sum over distinct thresholds of (R_n - R_{n-1}) P_n, in [0, 1].

    Tied scores form one threshold. Nothing is interpolated, because the trapezoidal
    rule is optimistic. With more than two classes it is the unweighted mean of the
    one-versus-rest values by softmax score, over the classes that occur in the labels.
    With two classes it is 0 if no label is positive.
    """

    name = "aucpr"
    higher_is_better = True
    needs_two_classes = True

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        check_labels(self.name, targets, max(outputs.shape[1], 2))
        scores = self._scores(outputs.detach().double())
        # Not before: the softmax turns infinite outputs into NaN.
        check_outputs(self.name, scores)
        ascending = scores.t().contiguous().sort().values
        if len(ascending) == 1:
            return _average_precision(ascending[0], scores[targets == 1, 0])
        present = torch.unique(targets).tolist()
        parts = [
            _average_precision(ascending[c], scores[targets == c, c]) for c in present
        ]
        return sum(parts) / len(parts)

    def _scores(self, outputs: Tensor) -> Tensor:
        """Return the scores to rank by: a column per class, or one for class 1."""
        if outputs.shape[1] == 2:
            # The same order as softmax scores, but without ties where they saturate.
            return outputs[:, 1:] - outputs[:, :1]
        return outputs if outputs.shape[1] == 1 else outputs.softmax(1)


@METRICS.register("aucpr-macro-logits")
class LogitAveragePrecision(AveragePrecision):
    """Unweighted mean over the classes in the labels, each ranked by its raw logit.

    For outputs trained independently of each other. The softmax of `aucpr` compares
    the logits of an example before it ranks examples, so the orders differ for two
    classes or more. For a single logit the two metrics are the same.
    """

    name = "aucpr-macro-logits"

    def _scores(self, outputs: Tensor) -> Tensor:
        return outputs


def _average_precision(ascending: Tensor, positive: Tensor) -> float:
    """Return the mean, over positive examples, of the precision at their own score.

    This equals the sum over thresholds, because R_n - R_{n-1} is the share of the
    positive examples that have exactly the n-th score. Scores of all examples are
    sorted, [N], those of the positive ones come in any order, [P].
    """
    if not len(positive):
        return 0.0
    positive = positive.sort().values
    hits = len(positive) - torch.searchsorted(positive, positive)
    chosen = len(ascending) - torch.searchsorted(ascending, positive)
    return float((hits.double() / chosen).mean())
