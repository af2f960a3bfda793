"""Value functions of an objective and of bounds: a cost that charges their excess."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from metricopt.on_outputs.statistics_value import (
    Explained,
    StatisticsValueFunction,
    needed_kinds,
)
from metricopt.statistics.contract import Groups
from metricopt.tasks.observed_statistics import ObservedStatistics

CHARGE = 10.0
"""What a unit of excess costs, in units of the objective's cost. Descents end near
bounds; whether they are met is judged apart."""
SMALL = 1e-9


class ConstrainedValueFunction:
    """Predicts a cost from statistics: the objective's, and a charge for excess.

    It stands wherever a value function of one metric does.

    Args:
        parts: value functions of the objective's cost, then of the excess of M bounds.
        margin: what is added to every excess, shape [M]; None for nothing.
    """

    def __init__(
        self, parts: Sequence[StatisticsValueFunction], margin: Tensor | None = None
    ) -> None:
        self.parts = tuple(parts)
        none = torch.zeros(len(self.parts) - 1, dtype=torch.float64)
        self.margin = none if margin is None else margin

    @property
    def reads(self) -> frozenset[str]:
        """Names of the groups that any of the value functions reads."""
        return frozenset().union(*(part.reads for part in self.parts))

    def with_margin(self, margin: Tensor) -> "ConstrainedValueFunction":
        """Return the same with another margin [M] of every bound."""
        return ConstrainedValueFunction(self.parts, margin)

    def means(self, groups: Groups) -> Tensor:
        """Return the predicted cost and every excess, without margins, [B, 1 + M]."""
        return self.predict_each(groups)[0]

    def predict_each(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the cost and of every excess.

        Without margins, each [B, 1 + M].
        """
        pairs = [part.predict(groups) for part in self.parts]
        means, deviations = zip(*pairs, strict=True)
        return torch.stack(means, 1), torch.stack(deviations, 1)

    def predict(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of the cost with its charge, each [B].

        The charge is for the excess that is expected, as predictions are normal.
        """
        mean, deviation = self.parts[0].predict(groups)
        variance = deviation.square()
        for part, margin in zip(self.parts[1:], self.margin, strict=True):
            excess, spread = part.predict(groups)
            spread = spread.clamp_min(SMALL)
            scaled = (excess + margin) / spread
            likely = torch.special.ndtr(scaled)
            density = torch.exp(-scaled.square() / 2) / math.sqrt(2 * math.pi)
            mean = mean + CHARGE * spread * (scaled * likely + density)
            variance = variance + (CHARGE * spread * likely).square()
        return mean, variance.sqrt()


def explain_each(
    statistics: ObservedStatistics, groups: Groups, each: Tensor
) -> Explained:
    """Fit a value function of every metric; see `explain`.

    The n queries have groups [n, q] each, and what was observed, `each` [n, 1 + M].
    Statistics are those that any of the metrics needs.
    """
    needed = [needed_kinds(statistics, groups, column) for column in each.T]
    kind = statistics.kind
    kept = {name for names in needed for name in names}
    union = kind.only([name for name in kind.names() if name in kept])
    known = union.of_these(groups)
    parts = []
    for names, column in zip(needed, each.T, strict=True):
        own = union.only(names)
        families = own.bounded_families(own.of_these(known))
        parts.append(StatisticsValueFunction(known, column, families))
    value = ConstrainedValueFunction(parts)
    return Explained.by(value, union, statistics, known)
