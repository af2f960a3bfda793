"""The surrogate of ReLoss, and how it learns to rank outputs as a metric does.

Source: Huang et al., ICLR 2022, and its published code, which is followed where the
paper is silent: Adam with rate 0.01 and weight decay 1e-3; a step sees 256 groups of
128 recorded logits; their labels are discarded, and made anew, so that accuracies cover
the whole range.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from baselines.learned_losses.class_correlation import log_probabilities
from baselines.learned_losses.logit_groups import (
    Groups,
    group_cross_entropy,
    make_groups,
)
from baselines.learned_losses.set_surrogate import agreement
from baselines.learned_losses.soft_ranks import NetworkRanks, correlation, hard_ranks
from metricopt.errors import (
    DataError,
    DivergedError,
    require_choice,
    require_ranges,
)
from metricopt.ranking import rank_correlation

Objective = Literal["correlation", "regression"]
HELD_OUT = 10
"""One in so many recorded logits is held out."""
HELD_OUT_GROUPS = 256
RATE, WEIGHT_DECAY = 0.01, 1e-3


class ReLossSurrogate(nn.Module):
    """A loss: the mean of |h(p)| over examples, p the probability of the true class.

    h is 1-128-128-128-1 with ELU. The absolute value can make it rise again: where
    recorded networks are seldom sure, it is least at the p that right answers usually
    have. `anchored`, which is ours, is |h(p) - h(1)|.

    Args:
        width: width of the hidden layers.
        anchored: whether no p has a smaller loss than 1, where it is 0.

    Attributes:
        scale: factor of the loss.
    """

    scale: Tensor

    def __init__(self, width: int = 128, *, anchored: bool = False) -> None:
        super().__init__()
        self.anchored = anchored
        self.h = nn.Sequential(
            nn.Linear(1, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, 1),
        )
        self.register_buffer("scale", torch.ones(()))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group, shape [...], not negative.

        Args:
            outputs: class logits [..., n, C] or one logit [..., n, 1].
            targets: labels, shape [..., n].
        """
        log_p = log_probabilities(outputs)
        true = log_p.gather(-1, targets.long()[..., None]).exp()
        values = self.h(true)
        if self.anchored:
            values = values - self.h(torch.ones_like(true[..., :1, :]))
        losses: Tensor = self.scale * values[..., 0].abs().mean(-1)
        return losses


Costs = Callable[[Groups], Tensor]
"""Returns the metric's cost of every group, shape [G]."""


def gradient_penalty(
    surrogate: ReLossSurrogate, groups: Groups
) -> tuple[Tensor, Tensor]:
    """Return the losses of groups, and how far their slopes are from 1: a scalar.

    The mean of (norm - 1)^2, of the gradient of the group's mean loss with respect to
    the logits of one example: this asks for slope n.
    """
    outputs = groups.outputs.detach().requires_grad_()
    losses = surrogate(outputs, groups.targets)
    (gradient,) = torch.autograd.grad(losses.sum(), outputs, create_graph=True)
    return losses, (gradient.norm(dim=-1) - 1).square().mean()


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How a surrogate is fitted.

    Attributes:
        objective: "correlation" with the metric, of ranks by a sorting network; or
            "regression", the squared difference from the metric's cost.
        epochs: passes over the recorded logits.
        groups: groups in a step.
        group_size: examples in a group.
        penalty: weight of the gradient penalty.
        unit_slope: whether the loss is scaled in the end, so that its mean slope is 1
            per example.
        anchored: see `ReLossSurrogate`.
    """

    objective: Objective = "correlation"
    epochs: int = 10
    groups: int = 256
    group_size: int = 128
    penalty: float = 10.0
    unit_slope: bool = False
    anchored: bool = False

    def __post_init__(self) -> None:
        require_choice("objective", self.objective, Objective)
        require_ranges(
            "a surrogate",
            vars(self),
            epochs=">= 1",
            groups=">= 2",
            group_size=">= 1",
            penalty=">= 0",
        )


class FittedSurrogate(NamedTuple):
    """A fitted surrogate, which takes no gradients, and how well it ranks.

    Attributes:
        surrogate: surrogate of the best epoch.
        rank_correlation: Spearman's, of its loss with the metric's cost on held-out
            groups.
        cross_entropy: the same of cross-entropy.
        course: `rank_correlation` after every epoch.
    """

    surrogate: ReLossSurrogate
    rank_correlation: float
    cross_entropy: float
    course: list[float]


def fit_surrogate(
    logits: Tensor, costs: Costs, fitting: Fitting, generator: torch.Generator
) -> FittedSurrogate:
    """Fit a surrogate to a metric on recorded logits; the best epoch is kept.

    Weights are drawn from torch's global generator.

    Args:
        logits: recorded, shape [N, C].
        costs: costs of the metric; called with the groups of a step, and with those
            that are held out once.
        fitting: length and objective.
        generator: source of groups and labels, on the CPU.

    Raises:
        DataError: if there are too few logits, or the metric is the same on all groups
            that are held out.
        DivergedError: if an objective is not finite.
    """
    size = fitting.group_size
    held, taught = _parted(logits, size, generator)
    held_costs = costs(held)
    surrogate = ReLossSurrogate(anchored=fitting.anchored).to(logits)
    cross_entropy = rank_correlation(group_cross_entropy(held), held_costs)
    if math.isnan(cross_entropy):
        raise DataError(
            f"the metric is the same on all {len(held.targets)} held-out groups of "
            f"{size} examples: there is nothing to rank"
        )
    learning = _Learning(surrogate, fitting, min(fitting.groups, len(taught) // size))
    course: list[float] = []
    best = copy.deepcopy(surrogate)
    for _ in range(fitting.epochs):
        order = torch.randperm(len(taught), generator=generator)
        for places in order.split(learning.count * size):
            if len(places) == learning.count * size:
                chosen = taught[places.to(taught.device)]
                groups = make_groups(chosen, size, generator)
                learning.step(groups, costs(groups))
        with torch.no_grad():
            course.append(agreement(surrogate(*held), held_costs))
        if course[-1] >= max(course):
            best = copy.deepcopy(surrogate)
    if fitting.unit_slope:
        best.scale /= _slope(best, held)
    return FittedSurrogate(
        best.requires_grad_(False), max(course), cross_entropy, course
    )


class _Learning:
    """The optimiser of a surrogate, and what it minimises.

    Args:
        surrogate: learns, in place.
        fitting: objective and penalty.
        count: groups in a step.
    """

    def __init__(
        self, surrogate: ReLossSurrogate, fitting: Fitting, count: int
    ) -> None:
        self.surrogate, self.fitting, self.count = surrogate, fitting, count
        self._optimizer = torch.optim.Adam(
            surrogate.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY
        )
        if fitting.objective == "correlation":
            self._ranks = NetworkRanks(count, device=surrogate.scale.device)

    def step(self, groups: Groups, costs: Tensor) -> None:
        """Take a step towards the metric's costs of groups."""
        losses, penalty = gradient_penalty(self.surrogate, groups)
        value = self._objective(losses, costs.to(losses))
        value = value + self.fitting.penalty * penalty
        if not bool(value.isfinite()):
            raise DivergedError(f"the surrogate's objective is {float(value)}")
        self._optimizer.zero_grad()
        value.backward()
        self._optimizer.step()

    def _objective(self, losses: Tensor, costs: Tensor) -> Tensor:
        if self.fitting.objective == "regression":
            return (losses - costs).square().mean()
        return -correlation(self._ranks(-losses), hard_ranks(-costs))


def _parted(
    logits: Tensor, size: int, generator: torch.Generator
) -> tuple[Groups, Tensor]:
    """Return groups that are held out, and the logits to learn from."""
    count = len(logits)
    order = torch.randperm(count, generator=generator).to(logits.device)
    held, taught = order[: count // HELD_OUT], order[count // HELD_OUT :]
    if len(taught) < 2 * size or not len(held):
        raise DataError(
            f"a surrogate needs logits for 2 groups of {size} besides those held out, "
            f"got {count} logits"
        )
    # With replacement: few logits still make many groups.
    drawn = torch.randint(len(held), (HELD_OUT_GROUPS * size,), generator=generator)
    chosen = logits[held[drawn.to(logits.device)]]
    return make_groups(chosen, size, generator), logits[taught]


def _slope(surrogate: ReLossSurrogate, groups: Groups) -> Tensor:
    """Return the mean slope per example."""
    outputs = groups.outputs.detach().requires_grad_()
    losses = surrogate(outputs, groups.targets)
    (gradient,) = torch.autograd.grad(losses.sum(), outputs)
    return gradient.norm(dim=-1).mean() * groups.targets.shape[-1]
