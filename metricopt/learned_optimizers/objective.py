"""Eq. (6): what a whole run of a learned optimizer is judged by.

Source: Huang et al., CVPR 2021, supplement B, eq. (6).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from metricopt.errors import require_choice, require_given, require_ranges

LEAST_COST = 1e-3
"""Smallest cost that a change is taken relative to."""
LARGEST_LOG = 20.0
"""Greatest log-ratio of losses, either way: beyond it a run has diverged."""
LossTerm = Literal["log-ratio", "sum"]


def metric_terms(costs: Tensor, sharpness: float, *, detached: bool = False) -> Tensor:
    """Return softplus(beta (M_t - min_{i<t} M_i) / M_t) for t = 1 to T.

    The term punishes a cost above the best one before, and rewards small gains.

    Args:
        costs: M_0 to M_T, shape [T + 1, ...].
        sharpness: beta.
        detached: whether the best cost before is a constant.

    Returns:
        Shape [T, ...]. Their mean is L_metric.

    Source: eq. (6). Differs: the division is by 0.001 at least; the start counts as
    t = 0, so that the first step has a best cost before it.
    """
    best = costs.cummin(0).values[:-1]
    best = best.detach() if detached else best
    now = costs[1:]
    return functional.softplus(sharpness * (now - best) / now.clamp_min(LEAST_COST))


def loss_terms(losses: Tensor, epsilon: float) -> Tensor:
    """Return log(loss_t + epsilon) - log(loss_0 + epsilon) for t = 1 to T.

    Args:
        losses: loss_0 to loss_T, at least 0, shape [T + 1, ...].
        epsilon: positive.

    Returns:
        Shape [T, ...], in [-20, 20]. Their mean is L_loss.

    Source: eq. (6). Differs: the limits.
    """
    # A loss may be negative, such as one that rewards; a logarithm is of none.
    logs = (losses.clamp_min(0) + epsilon).log()
    return (logs[1:] - logs[0]).clamp(-LARGEST_LOG, LARGEST_LOG)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """L_opt = metric_weight * L_metric + L_loss of a run of T steps.

    Attributes:
        metric_weight: lambda; 0 leaves out the metric, which is then not asked for.
        sharpness: beta; None for T / 2.
        epsilon: added to losses before their logarithm: 1e-8 for raw losses, 1e-4 for
            losses in [0, 1].
        loss_term: "log-ratio" as in eq. (6), a mean over steps; or "sum" of the losses,
            as Andrychowicz et al. have it.
        detached: whether the best cost before a step is a constant to the gradient.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    metric_weight: float = 50.0
    sharpness: float | None = None
    epsilon: float = 1e-8
    loss_term: LossTerm = "log-ratio"
    detached: bool = False

    def __post_init__(self) -> None:
        require_given("the objective", vars(self), "sharpness")
        require_choice("loss_term", self.loss_term, LossTerm)
        require_ranges(
            "the objective",
            vars(self),
            metric_weight=">= 0",
            sharpness="> 0",
            epsilon="> 0",
        )

    def terms(self, losses: Tensor, costs: Tensor | None, horizon: int) -> Tensor:
        """Return what every step adds to the objective of a run of `horizon` steps.

        Args:
            losses: at phi_0 to phi_t, shape [t + 1, ...].
            costs: the same of the metric; None where it does not count.
            horizon: T.

        Returns:
            Shape [t, ...]; over all T steps their sum is L_opt.
        """
        if self.loss_term == "sum":
            terms = losses[1:]
        else:
            terms = loss_terms(losses, self.epsilon) / horizon
        if costs is None or not self.metric_weight:
            return terms
        sharpness = self.sharpness or horizon / 2
        metric = metric_terms(costs, sharpness, detached=self.detached)
        return terms + self.metric_weight * metric / horizon

    def value(self, losses: Tensor, costs: Tensor | None) -> Tensor:
        """Return L_opt of whole runs, losses and costs [T + 1, ...], shape [...]."""
        return torch.sum(self.terms(losses, costs, len(losses) - 1), 0)
