"""Logit adjustment: decisions as if classes were more alike in frequency than they are.

Every logit loses tau times the logarithm of its class's share. With tau = 1 the
decisions are those for classes of equal shares, which is best for balanced accuracy
where the network's probabilities are right.

Source: Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021, eq. 9.
Differs: tau is the best of a grid by the metric, as in their Fig. 3, and shares are
those of observe.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.post_hoc.class_scores import (
    Improvement,
    OffsetQueries,
    log_probabilities,
)
from baselines.validation import Validation, labels
from metricopt.errors import require_ranges
from metricopt.metrics.confusion import class_shares


@dataclass(frozen=True)
class LogitAdjustment:
    """Which tau are tried.

    Attributes:
        step: distance between two of them.
        max_queries: metric queries; the first is of tau = 0.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    step: float = 0.2
    max_queries: int = 11

    def __post_init__(self) -> None:
        least = {"step": "> 0", "max_queries": ">= 1"}
        require_ranges("a logit adjustment", vars(self), **least)


def adjust_logits(
    outputs: Tensor, validation: Validation, *, search: LogitAdjustment
) -> tuple[Improvement, ...]:
    """Return tau = 0, then every tau that is better than all before it.

    Args:
        outputs: logits on the observe split, shape [N, C]; one logit counts as two
            classes.
        validation: the metric, any black box.
        search: which tau are tried.

    Raises:
        ShapeError: if outputs have no class axis.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    log_probs = log_probabilities(outputs)
    count = len(log_probs)
    shares = class_shares(labels(validation.observe), log_probs.shape[1])
    # A class that is not there counts as one example: its logarithm is finite.
    prior = shares.clamp_min(1 / count).log().to(log_probs)
    queries = OffsetQueries(log_probs, validation, search.max_queries)
    taus = search.step * torch.arange(1, search.max_queries).to(log_probs)
    queries.costs(-taus[:, None] * prior)
    return tuple(queries.trace)
