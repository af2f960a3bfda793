"""Post-hoc threshold shift: move the decision threshold to where the metric is best.

Source: Koyejo et al., NeurIPS 2014; Narasimhan et al., NeurIPS 2014. The shift is
optimal for ratios of linear functions of the confusion matrix. Differs: logits are
shifted instead of probabilities, which works with any black-box metric on logits.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.validation import Validation, check_binary, labels
from metricopt.errors import require_ranges

ROWS = 64
"""Thresholds in one call of the metric, which bounds its memory."""


@dataclass(frozen=True)
class ThresholdShift:
    """The best threshold found.

    Attributes:
        threshold: what to subtract from the logits.
        value: the metric there, in native units, on the examples it was tuned on.
        queries: metric queries made, one per candidate threshold.
    """

    threshold: float
    value: float
    queries: int

    def shift(self, outputs: Tensor) -> Tensor:
        """Return the outputs to be judged, of logits [..., N, 1]."""
        return outputs - self.threshold


def tune_threshold(
    outputs: Tensor, validation: Validation, *, max_candidates: int = 2000
) -> ThresholdShift:
    """Return the logit shift that makes the metric best; the lowest one on ties.

    Args:
        outputs: logits of the positive class on the observe split, shape [N, 1].
        validation: the metric, any black box, queried once per candidate; its observe
            split has labels in {0, 1}, both present.
        max_candidates: most thresholds tried, at least 2. Where there are more, they
            are thinned to equally spaced ranks, both ends included.

    Returns:
        The shift, the metric there and the queries made.

    Raises:
        ShapeError: if outputs are not [N, 1].
        DataError: if one of the classes is missing.
        ConfigError: if `max_candidates` is less than 2.
        BudgetExceededError: if the queries would exceed their limit.
    """
    check_binary(outputs, labels(validation.observe), user="a threshold shift")
    most = {"max_candidates": max_candidates}
    require_ranges("a threshold shift", most, max_candidates=">= 2")
    candidates = candidate_thresholds(outputs[:, 0])
    if len(candidates) > max_candidates:
        ranks = torch.linspace(0, len(candidates) - 1, max_candidates).round().long()
        candidates = candidates[ranks.to(candidates.device)]
    values = torch.cat(
        [
            validation.values(outputs - part[:, None, None])
            for part in candidates.split(ROWS)
        ]
    )
    best = int(validation.as_costs(values).argmin())
    return ThresholdShift(float(candidates[best]), float(values[best]), len(values))


def candidate_thresholds(scores: Tensor) -> Tensor:
    """Return one threshold for every way to cut the scores in two, ascending.

    A score is positive when it exceeds the threshold. A midpoint that is rounded up to
    the score above it is replaced by the score below, which cuts the same way.

    Args:
        scores: logits, shape [N].

    Returns:
        Below all scores, the midpoints of distinct neighbours, above all scores,
        shape [number of distinct scores + 1], dtype of the scores.
    """
    distinct = scores.unique()
    below, above = distinct[:-1], distinct[1:]
    middle = below + (above - below) / 2
    middle = torch.where(middle < above, middle, below)
    margin = distinct.abs().max() * 1e-3 + 1.0
    return torch.cat([distinct[:1] - margin, middle, distinct[-1:] + margin])
