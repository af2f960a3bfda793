"""The surrogate of ReLoss, and how it learns to rank outputs as a metric does.

Source: Huang et al., ICLR 2022, and its published code, which is followed where the
paper is silent: Adam with rate 0.01 and weight decay 1e-3; a step sees 256 groups of
128 recorded logits; their labels are discarded, and made anew, so that accuracies cover
the whole range. What a surrogate is of other outputs, and which groups they make, is
in `surrogates`.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from baselines.learned_losses.set_surrogate import agreement
from baselines.learned_losses.soft_ranks import NetworkRanks, correlation, hard_ranks
from baselines.learned_losses.surrogates.contract import (
    Groups,
    Surrogate,
    SurrogateKind,
    gathered,
)
from metricopt.errors import (
    ConfigError,
    DataError,
    DivergedError,
    require_choice,
    require_ranges,
)
from metricopt.ranking import rank_correlation

Objective = Literal["correlation", "regression"]
HELD_OUT = 10
"""One in so many recorded outputs is held out."""
RATE, WEIGHT_DECAY = 0.01, 1e-3


Costs = Callable[[Groups], Tensor]
"""Returns the metric's cost of every group, shape [G]."""


def gradient_penalty(
    surrogate: Surrogate, groups: Groups, *, per_example: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the losses of groups, and how far their slopes are from 1: a scalar.

    The mean of (norm - 1)^2, of the gradient of the group's mean loss with respect to
    the outputs of one example: this asks for slope n. `per_example` asks for slope 1.
    """
    outputs = groups.outputs.detach().requires_grad_()
    losses = surrogate(outputs, groups.targets)
    (gradient,) = torch.autograd.grad(losses.sum(), outputs, create_graph=True)
    norms = gradient.flatten(2).norm(dim=-1)
    if per_example:
        norms = norms * outputs.shape[1]
    return losses, (norms - 1).square().mean()


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How a surrogate is fitted.

    Attributes:
        objective: "correlation" with the metric, of ranks by a sorting network; or
            "regression", the squared difference from the metric's cost.
        epochs: passes over the recorded outputs.
        groups: groups in a step.
        group_size: examples in a group.
        penalty: weight of the gradient penalty.
        unit_slope: whether the loss is scaled in the end, so that its mean slope is 1
            per example on held-out groups. For classes these have labels that are made
            for them. With the labels that the outputs have, the loss may be several
            times as steep as cross-entropy.
        slope_of_base: whether the loss is scaled in the end, so that its mean slope per
            example equals the slope of the loss it takes the place of, both on held-out
            outputs with their own targets. Rates of that loss then suit it.
        anchored: see `Surrogate`.
        per_example: whether the penalty asks for slope 1 of an example, not n.
        held_out: groups that are held out.
    """

    objective: Objective = "correlation"
    epochs: int = 10
    groups: int = 256
    group_size: int = 128
    penalty: float = 10.0
    unit_slope: bool = False
    slope_of_base: bool = False
    anchored: bool = False
    per_example: bool = False
    held_out: int = 256

    def __post_init__(self) -> None:
        require_choice("objective", self.objective, Objective)
        require_ranges(
            "a surrogate",
            vars(self),
            epochs=">= 1",
            groups=">= 2",
            group_size=">= 1",
            held_out=">= 2",
            penalty=">= 0",
        )
        if self.unit_slope and self.slope_of_base:
            raise ConfigError(
                "a surrogate is scaled to one slope: set unit_slope or slope_of_base, "
                "got both"
            )


class FittedSurrogate(NamedTuple):
    """A fitted surrogate, which takes no gradients, and how well it ranks.

    Attributes:
        surrogate: surrogate of the best epoch.
        rank_correlation: Spearman's, of its loss with the metric's cost on held-out
            groups.
        base: the same of the loss that it takes the place of.
        course: `rank_correlation` after every epoch.
        held_out: cost, loss before it is scaled, and base loss of every held-out group,
            shape [3, G].
        slope: mean slope per example before the loss is scaled, on held-out outputs
            with their own targets.
        slope_base: the same of the base loss.
    """

    surrogate: Surrogate
    rank_correlation: float
    base: float
    course: list[float]
    held_out: Tensor
    slope: float
    slope_base: float


def fit_surrogate(
    kind: SurrogateKind,
    recorded: Groups,
    costs: Costs,
    fitting: Fitting,
    generator: torch.Generator,
) -> FittedSurrogate:
    """Fit a surrogate to a metric on recorded outputs; the best epoch is kept.

    Weights are drawn from torch's global generator.

    Args:
        kind: what the outputs are.
        recorded: outputs in the order of time, shape [N, ...], with their targets.
        costs: costs of the metric; called with the groups of a step, and with those
            that are held out once.
        fitting: length and objective.
        generator: source of groups and labels, on the CPU.

    Raises:
        DataError: if there are too few outputs, or the metric is the same on all groups
            that are held out.
        DivergedError: if an objective is not finite.
    """
    size = fitting.group_size
    places, taught = _parted(len(recorded.outputs), fitting, generator)
    held = kind.groups(recorded, places, size, generator)
    held_costs = costs(held)
    surrogate = kind.make(held, anchored=fitting.anchored).to(held.outputs)
    base_losses = kind.base_losses(held)
    base = rank_correlation(base_losses, held_costs)
    if math.isnan(base):
        raise DataError(
            f"the metric is the same on all {len(held.targets)} held-out groups of "
            f"{size} examples: there is nothing to rank"
        )
    learning = _Learning(surrogate, fitting, min(fitting.groups, len(taught) // size))
    course: list[float] = []
    best = copy.deepcopy(surrogate)
    for _ in range(fitting.epochs):
        order = torch.randperm(len(taught), generator=generator)
        for drawn in order.split(learning.count * size):
            if len(drawn) == learning.count * size:
                groups = kind.groups(recorded, taught[drawn], size, generator)
                learning.step(groups, costs(groups))
        with torch.no_grad():
            course.append(agreement(surrogate(*held), held_costs))
        if course[-1] >= max(course):
            best = copy.deepcopy(surrogate)
    with torch.no_grad():
        losses = best(*held)
    slopes = _scale(best, kind, fitting, held, gathered(recorded, places, size))
    seen = torch.stack([held_costs.to(losses), losses, base_losses]).cpu()
    best.requires_grad_(False)
    return FittedSurrogate(best, max(course), base, course, seen, *slopes)


class _Learning:
    """The optimiser of a surrogate, and what it minimises.

    Args:
        surrogate: learns, in place.
        fitting: objective and penalty.
        count: groups in a step.
    """

    def __init__(self, surrogate: Surrogate, fitting: Fitting, count: int) -> None:
        self.surrogate, self.fitting, self.count = surrogate, fitting, count
        self._optimizer = torch.optim.Adam(
            surrogate.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY
        )
        if fitting.objective == "correlation":
            self._ranks = NetworkRanks(count, device=surrogate.scale.device)

    def step(self, groups: Groups, costs: Tensor) -> None:
        """Take a step towards the metric's costs of groups."""
        each = self.fitting.per_example
        losses, penalty = gradient_penalty(self.surrogate, groups, per_example=each)
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
    count: int, fitting: Fitting, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return places of outputs in groups that are held out, and of those to learn from.

    Args:
        count: recorded outputs.
        fitting: number and size of groups.
        generator: source of the places, on the CPU.
    """
    size = fitting.group_size
    order = torch.randperm(count, generator=generator)
    held, taught = order[: count // HELD_OUT], order[count // HELD_OUT :]
    if len(taught) < 2 * size or not len(held):
        raise DataError(
            f"a surrogate needs outputs for 2 groups of {size} besides those held out, "
            f"got {count} outputs"
        )
    # With replacement: few outputs still make many groups.
    every = (fitting.held_out * size,)
    drawn = torch.randint(len(held), every, generator=generator)
    return held[drawn], taught


def _scale(
    surrogate: Surrogate,
    kind: SurrogateKind,
    fitting: Fitting,
    held: Groups,
    own: Groups,
) -> tuple[float, float]:
    """Scale a fitted surrogate in place; return `slope` and `slope_base` before that.

    Args:
        surrogate: with scale 1.
        kind: what the outputs are.
        fitting: which slope the loss is to have.
        held: groups that are held out.
        own: the same outputs with their own targets.
    """

    def losses(groups: Groups) -> Tensor:
        return surrogate(*groups)

    slope, base = _slope(losses, own), _slope(kind.base_losses, own)
    if not (slope > 0 and base > 0):
        raise DivergedError(
            f"the slope of the surrogate is {float(slope)}, and of the usual loss "
            f"{float(base)}: there is nothing to descend"
        )
    if fitting.unit_slope:
        surrogate.scale /= _slope(losses, held)
    if fitting.slope_of_base:
        surrogate.scale *= base / slope
    return float(slope), float(base)


def _slope(losses_of: Callable[[Groups], Tensor], groups: Groups) -> Tensor:
    """Return the mean slope per example of a loss of groups."""
    outputs = groups.outputs.detach().requires_grad_()
    losses = losses_of(Groups(outputs, groups.targets))
    (gradient,) = torch.autograd.grad(losses.sum(), outputs)
    return gradient.flatten(2).norm(dim=-1).mean() * groups.targets.shape[1]
