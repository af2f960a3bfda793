"""Looks: what held-out folds say of a descent on its way."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.on_outputs.reach import Reach


@dataclass(frozen=True)
class Look:
    """What held-out folds say of a phi.

    Attributes:
        reach: what was moved.
        steps: for how long.
        moved: fitted on all folds, shape [m].
        seen: cost of `moved` on all examples, which have chosen it.
        cost: cost on held-out examples, or `seen` if that is higher: folds that
            err in different ways look better together than each of them is.
        without: the same without the examples of each fold, shape [folds].
        held_out: views of every example, whose fold was left out, [1, N, V].
    """

    reach: Reach
    steps: int
    moved: Tensor
    seen: float
    cost: float
    without: Tensor
    held_out: Tensor


class Followed:
    """A descent as held-out folds have seen it: its best look, and what that is worth.

    The length that is best on all folds is the best of many, and looks better than it
    is. So every fold is judged at the length that is best on the other folds.

    Args:
        look: the first.
        folds: the fold of every example, shape [N].

    Attributes:
        best: the look of least cost.
        without: least costs without the examples of each fold, shape [folds].
        held_out: views of every example, at a length in which it had no say,
            [1, N, V].
    """

    def __init__(self, look: Look, folds: Tensor) -> None:
        self._folds = folds
        self.best = look
        self.without, self.held_out = look.without.clone(), look.held_out.clone()

    def add(self, look: Look) -> None:
        """Take what is better than before, on all folds or on all but one."""
        self.best = min(self.best, look, key=lambda each: each.cost)
        better = look.without < self.without
        self.without = torch.where(better, look.without, self.without)
        places = better[self._folds].to(self.held_out.device)
        self.held_out[:, places] = look.held_out[:, places]


def simplest(costs: Tensor) -> int:
    """Return the place of the first that costs no more than the best, but for chance.

    Source: the rule of one standard error, Breiman et al., Classification and
    Regression Trees, 1984, Sec. 3.4.3; the error is that of the bootstrap.

    Args:
        costs: costs of the simplest first, shape [n, 1 + samples]; the first column is
            of all examples, the others of samples of the bootstrap.
    """
    more = costs - costs[costs[:, 0].argmin()]
    as_good = more[:, 0] <= more[:, 1:].std(1)
    return int(as_good.int().argmax())
