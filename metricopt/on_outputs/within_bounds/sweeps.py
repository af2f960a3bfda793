"""Sweeps of output offsets: what thresholds make of an objective and of bounds.

Predictions cost no query, and offsets need no network. So every threshold of a class is
tried, given the offsets of the others, for several aims one after another. All that was
tried is kept: it is what fronts are made of.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.on_outputs.statistics_value import CostOfStatistics
from metricopt.tasks.observed_statistics import ObservedStatistics

Aim = Callable[[Tensor], Tensor]
"""From predictions [P, 1 + M] to what is to be small, [P]."""
ROOM = 4_000_000
"""Most outputs, of all examples under all offsets, that are looked at for one aim."""
MOST, FEWEST = 1_000, 8
"""Most thresholds of two classes; fewest of each of several."""
PASSES = 2
"""Times that every class is swept for one aim."""
TOGETHER = 50
"""Offsets whose statistics are computed together."""


class Sweeps:
    """All offsets that were tried, with what is predicted of them.

    Args:
        statistics: as functions of C output offsets alone.
        value: what is predicted of them.

    Attributes:
        offsets: what was tried, shape [P, C]; the first is 0.
        means: predictions, shape [P, 1 + M].
    """

    def __init__(self, statistics: ObservedStatistics, value: CostOfStatistics) -> None:
        self.statistics, self._value = statistics, value
        self.offsets = torch.zeros(1, statistics.size)
        self.means = self.predicted(self.offsets)
        self._outputs = statistics.outputs(self.offsets)[0].cpu()
        # Several labels, or one, are decided each by itself; classes are compared.
        self._apart = statistics.size == 1 or statistics.targets.ndim > 1

    def predicted(self, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return predictions [P, 1 + M] of offsets [P, C], examples weighted [N]."""
        found = []
        for part in offsets.split(TOGETHER):
            rows = None if weights is None else weights.expand(len(part), -1)
            found.append(self._value.means(self.statistics.exact(part, rows)))
        return torch.cat(found)

    def run(self, aims: Sequence[Aim]) -> None:
        """Sweep all classes for every aim, from the best for it so far."""
        if self.statistics.size <= (1 if self._apart else 2):
            self._try(self._thresholds(-1, self.offsets[0], MOST))
            return
        for aim in aims:
            for _ in range(PASSES):
                for place in range(self.statistics.size):
                    best = self.offsets[aim(self.means).argmin()]
                    self._try(self._thresholds(place, best, self._count))

    @property
    def _count(self) -> int:
        """Thresholds of one class out of several."""
        examples, classes = self._outputs.shape
        return max(FEWEST, min(24, ROOM // (examples * classes**2 * PASSES)))

    def _try(self, offsets: Tensor) -> None:
        self.offsets = torch.cat([self.offsets, offsets])
        self.means = torch.cat([self.means, self.predicted(offsets)])

    def _thresholds(self, place: int, base: Tensor, most: int) -> Tensor:
        """Return offsets [L, C] that differ in a class, at about evenly many examples.

        Each lies between two examples whose decisions it tells apart.
        """
        needed = -self._outputs[:, place]
        if not self._apart:
            others = self._outputs + base
            others[:, place] = -torch.inf
            needed = needed + others.amax(1)
        ends = needed.unique()
        ends = torch.cat([ends[:1] - 1, ends, ends[-1:] + 1])
        between = (ends[1:] + ends[:-1]) / 2
        examples = len(self._outputs)
        most = max(FEWEST, min(most, ROOM // (examples * len(base))))
        chosen = torch.linspace(0, len(between) - 1, min(most, len(between)))
        found = base.repeat(len(chosen), 1)
        found[:, place] = between[chosen.round().long()]
        return found
