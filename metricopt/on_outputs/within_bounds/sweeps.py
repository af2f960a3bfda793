"""Sweeps of output offsets: what thresholds make of an objective and of bounds.

Predictions cost no query, and offsets need no network. So every threshold of a class is
tried, given the offsets of the others, for several aims one after another. All that was
tried is kept: it is what fronts are made of.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.on_outputs.obvious import obvious
from metricopt.on_outputs.statistics_value import CostOfStatistics
from metricopt.tasks.observed_statistics import ObservedStatistics

Aim = Callable[[Tensor], Tensor]
"""From predictions [P, 1 + M] to what is to be small, [P]."""
ROOM = 20_000_000
"""Most outputs that are looked at: of all examples, under all offsets."""
CHEAP, DEAR = {"decisions", "precisions"}, 10
"""Kinds of statistics that need no sorting; how much longer others take."""
LARGEST = 100
"""Most offsets that are swept."""
MOST, FEWEST = 1_000, 8
"""Most thresholds of two classes; fewest of each of several."""
PASSES = 2
"""Times that every class is swept for one aim."""
TOGETHER = 50
"""Offsets whose statistics are computed together."""


class Sweeps:
    """All offsets that were tried, with what is predicted of them.

    Args:
        statistics: as functions of d numbers, of which some are offsets of outputs:
            alone, beside scales, or of groups of examples.
        value: what is predicted of them.

    Attributes:
        offsets: what was tried, shape [P, d]; the first is 0.
        means: predictions, shape [P, 1 + M].
    """

    def __init__(self, statistics: ObservedStatistics, value: CostOfStatistics) -> None:
        self.statistics, self._value = statistics, value
        self.offsets = torch.zeros(1, statistics.size)
        self.means = self.predicted(self.offsets)
        self._outputs = self._outputs_at(self.offsets)
        self._columns = self._outputs.shape[1]
        # Several labels, or one, are decided each by itself; classes are compared.
        self._apart = self._columns == 1 or statistics.targets.ndim > 1
        places = range(statistics.size)[statistics.parts["offsets"]]
        # Of two classes that are compared, one is moved.
        alike = self._columns == 2 and not self._apart
        self._places = list(places[1::2] if alike else places)

    @property
    def is_exhaustive(self) -> bool:
        """Whether all that offsets can do is tried."""
        return len(self._places) == 1

    def predicted(self, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return predictions [P, 1 + M] of offsets [P, d], examples weighted [N]."""
        found = []
        for part in offsets.split(TOGETHER):
            rows = None if weights is None else weights.expand(len(part), -1)
            found.append(self._value.means(self.statistics.exact(part, rows)))
        return torch.cat(found)

    def run(self, aims: Sequence[Aim]) -> None:
        """Sweep all offsets for every aim, from the best for it so far.

        Of several classes the obvious stands first: a least recall of many classes
        rises with no offset alone, but with all of logit adjustment.
        """
        if self.is_exhaustive:
            self._try(self._thresholds(self._places[0], self.offsets[0], MOST))
            return
        self._try(obvious(self.statistics))
        turns = PASSES * len(self._places)
        followed = max(1, min(len(aims), self.room // (FEWEST * turns)))
        count = max(FEWEST, min(24, self.room // (followed * turns)))
        for chosen in torch.linspace(0, len(aims) - 1, followed).round().long():
            aim = aims[int(chosen)]
            for _ in range(PASSES):
                for place in self._places:
                    best = self.offsets[aim(self.means).argmin()]
                    self._try(self._thresholds(place, best, count))

    @property
    def room(self) -> int:
        """Most offsets whose statistics are computed in one go through all."""
        dear = set(self.statistics.kind.names()) - CHEAP
        return ROOM // (self._outputs.numel() * (DEAR if dear else 1))

    def _try(self, offsets: Tensor) -> None:
        if not len(offsets):
            return
        self.offsets = torch.cat([self.offsets, offsets])
        self.means = torch.cat([self.means, self.predicted(offsets)])

    def _outputs_at(self, offsets: Tensor) -> Tensor:
        return self.statistics.outputs(offsets)[0].cpu()

    def _thresholds(self, place: int, base: Tensor, most: int) -> Tensor:
        """Return offsets [L, d] that differ in one, at about evenly many examples.

        Each lies between two examples whose decisions it tells apart.
        """
        without, once = base.clone(), torch.zeros_like(base)
        without[place], once[place] = 0, 1
        change = self._outputs_at(once[None]) - self._outputs
        column = int(change.sum(0).argmax())
        moved = change[:, column]
        if not self._apart:
            # Rows of log-probabilities are normalised again, so all columns change.
            others = change.sum(1) - moved
            moved = moved - others / (self._columns - 1)
        outputs = self._outputs_at(without[None])[moved > 0.5]
        needed = -outputs[:, column]
        if not self._apart:
            outputs[:, column] = -torch.inf
            needed = needed + outputs.amax(1)
        ends = needed.unique()
        ends = torch.cat([ends[:1] - 1, ends, ends[-1:] + 1])
        between = (ends[1:] + ends[:-1]) / 2
        most = max(FEWEST, min(most, self.room))
        chosen = torch.linspace(0, len(between) - 1, min(most, len(between)))
        found = base.repeat(len(chosen), 1)
        found[:, place] = between[chosen.round().long()]
        return found


def is_swept(statistics: ObservedStatistics) -> bool:
    """Return whether thresholds can be swept: there are offsets of what is decided."""
    targets = statistics.targets
    decided = not targets.is_floating_point() or bool(
        ((targets == 0) | (targets == 1)).all()
    )
    scores = statistics.kind.reads == "scores"
    few = len(range(statistics.size)[statistics.parts.get("offsets", slice(0))])
    return scores and decided and 0 < few <= LARGEST
