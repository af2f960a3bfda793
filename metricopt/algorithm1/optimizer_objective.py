"""What a learned optimizer is meta-trained for: a lower metric, and a lower loss.

Source: Huang et al., CVPR 2021, eq. (6) and supplement B. The loss of a step counts by
its logarithm, the metric by whether the step was worse than the best one before.
"""

import torch
from torch import Tensor
from torch.nn import functional

METRIC_WEIGHT = 50.0
"""Weight lambda of the metric term."""
LEAST_METRIC = 1e-3
"""Smaller metrics are divided by this instead: a change of them says little."""
LEAST_LOSS = 1e-8
"""Added to losses before their logarithm is taken."""


def optimizer_objective(
    metrics: Tensor, losses: Tensor, *, beta: float, weight: float = METRIC_WEIGHT
) -> Tensor:
    """Return L_opt = lambda L_metric + L_loss, eq. (6), shape [].

    Args:
        metrics: predicted cost of phi_0 to phi_T, shape [T + 1, B].
        losses: loss at the same phi, shape [T + 1, B].
        beta: how steeply a step that is worse counts; T / 2 in the paper.
        weight: lambda.
    """
    return weight * metric_term(metrics, beta) + loss_term(losses)


def metric_term(metrics: Tensor, beta: float) -> Tensor:
    """Return L_metric = 1/T sum_t softplus(beta (M_t - M_best) / M_t), shape [].

    M_best is the least of M_0 to M_{t-1}. Metrics are [T + 1] or [T + 1, B], the mean
    over rows is taken.
    """
    best = metrics.cummin(0).values[:-1]
    now = metrics[1:]
    change = (now - best) / now.clamp_min(LEAST_METRIC)
    return functional.softplus(beta * change).mean()


def loss_term(losses: Tensor) -> Tensor:
    """Return L_loss = 1/T sum_t log(loss_t / loss_0), shape [], for t from 1 on.

    Losses are [T + 1] or [T + 1, B], none negative; the mean over rows is taken.
    """
    logarithms = torch.log(losses + LEAST_LOSS)
    return (logarithms[1:] - logarithms[0]).mean()
