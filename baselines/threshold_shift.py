"""Post-hoc threshold shift: move the decision threshold to where the metric is best.

Source: Koyejo et al., NeurIPS 2014; Narasimhan et al., NeurIPS 2014. Differs: the
logits are shifted rather than the probabilities, so that any black-box metric on
logits will do; optimal for ratios of linear functions of the confusion matrix.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.network_method import check_binary
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric, to_cost

ROWS = 64
"""Thresholds in one call of the metric, which bounds its memory."""


@dataclass(frozen=True)
class ThresholdShift:
    """The best threshold found.

    Attributes:
        threshold: what to subtract from the logits.
        value: the metric there, in native units, on the examples it was tuned on.
        queries: metric evaluations made, one per candidate threshold.
    """

    threshold: float
    value: float
    queries: int


def tune_threshold(
    outputs: Tensor, targets: Tensor, *, metric: Metric, max_candidates: int = 2000
) -> ThresholdShift:
    """Return the logit shift that makes the metric best; the lowest one on ties.

    Args:
        outputs: logits of the positive class on the observe split, shape [N, 1].
        targets: labels, shape [N], integers in {0, 1}, both present.
        metric: any black box; queried once per candidate.
        max_candidates: most thresholds tried, at least 2. Where there are more, they
            are thinned to equally spaced ranks, both ends included.

    Returns:
        The shift, the metric there and the queries made.

    Raises:
        ShapeError: if outputs are not [N, 1].
        DataError: if one of the classes is missing.
        ConfigError: if `max_candidates` is less than 2.
    """
    check_binary(outputs, targets, user="a threshold shift")
    if max_candidates < 2:
        raise ConfigError(f"max_candidates must be at least 2, got {max_candidates}")
    candidates = candidate_thresholds(outputs[:, 0])
    if len(candidates) > max_candidates:
        ranks = torch.linspace(0, len(candidates) - 1, max_candidates).round().long()
        candidates = candidates[ranks.to(candidates.device)]
    values = torch.cat(
        [
            metric.values(outputs - part[:, None, None], targets)
            for part in candidates.split(ROWS)
        ]
    )
    best = int(to_cost(metric, values).argmin())
    return ThresholdShift(float(candidates[best]), float(values[best]), len(values))


def candidate_thresholds(scores: Tensor) -> Tensor:
    """Return one threshold for every way to cut the scores in two, ascending.

    A score is positive when it reaches the threshold. Where rounding puts a midpoint
    on the score below it, the score above takes its place, which cuts the same way.

    Args:
        scores: logits, shape [N].

    Returns:
        Below all scores, the midpoints of distinct neighbours, above all scores,
        shape [number of distinct scores + 1], dtype of the scores.
    """
    distinct = scores.unique()
    below, above = distinct[:-1], distinct[1:]
    middle = below + (above - below) / 2
    middle = torch.where(middle > below, middle, above)
    margin = distinct.abs().max() * 1e-3 + 1.0
    return torch.cat([distinct[:1] - margin, middle, distinct[-1:] + margin])
