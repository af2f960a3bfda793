"""Area under the precision-recall curve, as step-wise average precision."""

import torch
from torch import Tensor

from metricopt.metrics.base import METRICS, Metric
from metricopt.metrics.checks import check_labels, check_outputs


@METRICS.register("aucpr")
class AveragePrecision(Metric):
    """Sum over distinct thresholds of (R_n - R_{n-1}) P_n, in [0, 1].

    Tied scores form one threshold; nothing is interpolated, as the trapezoid is
    optimistic. More than two classes: unweighted mean of the one-versus-rest values
    by softmax score, over the classes that occur in the labels. It is 0 where two
    classes have no positive label. Computed by scikit-learn.
    """

    name = "aucpr"
    higher_is_better = True
    needs_two_classes = True

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        classes = outputs.shape[1]
        check_labels(self.name, targets, max(classes, 2))
        check_outputs(self.name, outputs)
        outputs = outputs.detach().double()
        if classes == 1:
            return _average_precision(outputs[:, 0], targets == 1)
        if classes == 2:
            # The order of the softmax scores, without ties where those saturate.
            return _average_precision(outputs[:, 1] - outputs[:, 0], targets == 1)
        scores = outputs.softmax(1)
        present = torch.unique(targets).tolist()
        parts = [_average_precision(scores[:, c], targets == c) for c in present]
        return sum(parts) / len(parts)


def _average_precision(scores: Tensor, positive: Tensor) -> float:
    # Imported here because it takes a second that no other metric should wait for.
    from sklearn.metrics import average_precision_score

    if not bool(positive.any()):
        return 0.0
    return float(average_precision_score(positive.cpu().numpy(), scores.cpu().numpy()))
