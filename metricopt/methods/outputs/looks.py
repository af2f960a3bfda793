"""Looks: what held-out folds say of a descent on its way."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.methods.outputs.reach import Reach


@dataclass(frozen=True)
class Look:
    """What held-out folds say of a phi.

    Attributes:
        reach: what was moved.
        steps: for how long.
        moved: fitted on all folds, shape [m].
        seen: its cost.
        cost: that of held-out examples, or the former where that is more: folds that
            err in different ways look better together than each of them is.
        without: the same without the examples of each fold, shape [folds].
        held_out: outputs of every example, whose fold was left out, [1, N, C].
    """

    reach: Reach
    steps: int
    moved: Tensor
    seen: float
    cost: float
    without: Tensor
    held_out: Tensor


class Nested:
    """Held-out outputs of every fold, by the look that is best on the other folds.

    What is chosen on all folds is the best of many, and looks better than it is. Here
    no example has a say in the choice it is judged by.

    Args:
        folds: the fold of every example, shape [N].
    """

    def __init__(self, folds: Tensor) -> None:
        self._folds = folds
        self._costs: Tensor | None = None
        self.outputs = torch.empty(0)

    def add(self, look: Look) -> None:
        """Take the folds for which a look is the best so far."""
        if self._costs is None:
            self._costs, self.outputs = look.without.clone(), look.held_out.clone()
            return
        better = look.without < self._costs
        self._costs = torch.where(better, look.without, self._costs)
        places = better[self._folds].to(self.outputs.device)
        self.outputs[:, places] = look.held_out[:, places]
