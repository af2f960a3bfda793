"""What held-out folds say of descents on the way, and which of them is taken."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.methods.attempts import Attempt
from metricopt.on_outputs.coordinates import Reach


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
        by_hand: what it is that anybody would try by hand; "" for nothing.
    """

    reach: Reach
    steps: int
    moved: Tensor
    seen: float
    cost: float
    without: Tensor
    held_out: Tensor
    by_hand: str = ""


class Followed:
    """A descent as held-out folds [N] have seen it: its best look, and its worth.

    The length that is best on all folds is the best of many, and looks better than it
    is. So every fold is judged at the length that is best on the other folds.

    Attributes:
        best: the look of least cost.
        without: least costs without the examples of each fold, shape [folds].
        held_out: views of every example, at a length in which it had no say, [1, N, V].
        obvious: looks at what anybody would try by hand.
    """

    def __init__(self, look: Look, folds: Tensor) -> None:
        self._folds = folds
        self.best = look
        self.without, self.held_out = look.without.clone(), look.held_out.clone()
        self.obvious: list[Attempt] = []

    def add(self, look: Look) -> None:
        """Take what is better than before, on all folds or on all but one."""
        self.best = min(self.best, look, key=lambda each: each.cost)
        better = look.without < self.without
        self.without = torch.where(better, look.without, self.without)
        places = better[self._folds].to(self.held_out.device)
        self.held_out[:, places] = look.held_out[:, places]
        if look.by_hand:
            phi = look.reach.whole(look.moved)
            self.obvious.append(Attempt(look.by_hand, phi, look.seen))


def chance_of(costs: Tensor) -> Tensor:
    """Return errors of the differences to the least of n costs, shape [n].

    Costs are [n, 1 + samples], of all examples, then of samples of the bootstrap.
    """
    more = costs - costs[costs[:, 0].argmin()]
    return more[:, 1:].std(1)


def simplest(costs: Tensor, errors: Tensor) -> int:
    """Return the place of the first that costs no more than the best, but for chance.

    Costs are [n], those of the simplest first; errors [n] are those of `chance_of`.

    Source: the rule of one standard error, Breiman et al., Classification and
    Regression Trees, 1984, Sec. 3.4.3; the error is that of the bootstrap.
    """
    as_good = costs - costs.min() <= errors
    return int(as_good.int().argmax())


def without_a_say(descents: list[Followed], errors: Tensor, folds: Tensor) -> Tensor:
    """Return views of every example, by what is chosen where its fold has no say.

    What is best of many looks better than it is, so the choice of a descent is
    cross-fitted like its length. Shape [1, N, V].
    """
    without = torch.stack([each.without for each in descents], 1)  # [folds, descents]
    chosen = torch.tensor([simplest(costs, errors.to(costs)) for costs in without])
    held_out = descents[0].held_out.clone()
    for place, followed in enumerate(descents):
        own = (chosen[folds] == place).to(held_out.device)
        held_out[:, own] = followed.held_out[:, own]
    return held_out
