"""Which of several choices is best, where bounds are hard to meet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from metricopt.metrics.constrained import Bounds
from metricopt.on_outputs.within_bounds.held import Held

LIKELY = 0.5
"""Probability of meeting all bounds that is worth any price."""
KEPT, LEAST_KEPT = 0.5, 0.05
"""Share of the untouched network's lead over constant decisions that is to be kept;
and the least share, if nothing that keeps more is likely to meet the bounds."""
UNLIKELY = 0.25
"""Probability of meeting all bounds below which less use will do."""


@dataclass(frozen=True)
class Preference:
    """An order of choices.

    Attributes:
        untouched: phi = 0.
        bounds: what is to be met.
        constant: least cost of decisions that are the same for all examples and meet
            the bounds; infinite if there are none.
    """

    untouched: Held
    bounds: Bounds
    constant: float = math.inf

    def best(self, choices: Sequence[Held]) -> Held:
        """Return the best of some choices.

        Where what is of use hardly meets the bounds, less use will do.
        """
        best = max(choices, key=self.order)
        if best.all_met >= UNLIKELY:
            return best
        return max(choices, key=partial(self.order, kept=LEAST_KEPT))

    def order(self, held: Held, kept: float = KEPT) -> tuple[bool, bool, bool, float]:
        """Return what is greater the better a choice is.

        To meet the bounds surely comes first, then to meet them more probably than not,
        each at any price that leaves some use. Below and between these, a probability
        is worth as much as the same share of the objective.
        """
        price = self.bounds.price(_cost(held), _cost(self.untouched))
        is_enough = self.bounds.is_enough(held.all_met)
        worth = -price if is_enough else held.all_met - price
        return self.is_of_use(held, kept), is_enough, held.all_met >= LIKELY, worth

    def is_of_use(self, held: Held, kept: float = KEPT) -> bool:
        """Return whether a choice is better than decisions that need no network.

        Whoever calls nobody positive treats all groups alike.
        """
        lead = max(0.0, self.constant - _cost(self.untouched))
        return _cost(held) <= self.constant - kept * lead


def _cost(held: Held) -> float:
    return held.objective[0].item()
