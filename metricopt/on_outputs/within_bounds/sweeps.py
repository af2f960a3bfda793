"""Sweeps of output offsets: what thresholds make of an objective and of bounds.

Predictions cost no query, and offsets need no network. So every threshold of a class is
tried, given the offsets of the others, for several aims one after another. All that was
tried is kept: it is what fronts are made of.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.on_outputs.coordinates import at_temperatures
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
TEMPERATURES = (0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
"""Temperatures that are tried where a bound may be on a score of probabilities."""
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
        temperatures: outputs at other temperatures [T, d]; none where no score counts.
    """

    def __init__(self, statistics: ObservedStatistics, value: CostOfStatistics) -> None:
        self.statistics, self._value = statistics, value
        self.offsets = torch.zeros(1, statistics.size)
        self.means = self.predicted(self.offsets)
        self.temperatures = self._temperatures()
        self._outputs = self._outputs_at(self.offsets)
        self._columns = self._outputs.shape[1]
        # Several labels, or one, are decided each by itself; classes are compared.
        self._apart = self._columns == 1 or statistics.targets.ndim > 1
        places = range(statistics.size)[statistics.parts["offsets"]]
        # Of two classes that are compared, one is moved.
        alike = self._columns == 2 and not self._apart
        every, columns = torch.tensor(places), len(places[: self._columns])
        own = every.view(-1, columns)[:, 1:] if alike else every.view(-1, columns)
        # Groups of examples move apart, and all of them together.
        self._together = list(own.T)
        self._lines = list(self._together)
        if len(own) > 1:
            self._lines += own.reshape(-1, 1)

    @property
    def is_exhaustive(self) -> bool:
        """Whether all that offsets can do is tried."""
        return len(self._lines) == 1

    @property
    def constant(self) -> Tensor:
        """Predictions [K, 1 + M] of decisions that are the same for all examples."""
        far = 1 + 2 * self._outputs.abs().max().item()
        each = torch.zeros(len(self._together), self.statistics.size)
        for offsets, line in zip(each, self._together, strict=True):
            offsets[line] += far
        if self._apart or len(each) == 1:
            # No label or all of them; the first or the second of two classes.
            each = torch.stack([each.sum(0), -each.sum(0)])
        return self.predicted(each)

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
        rises with no offset alone, but with all of logit adjustment. A score hardly
        moves with offsets, but with a temperature, at no cost of decisions.
        """
        self._try(self.temperatures)
        if self.is_exhaustive:
            self._try(self._thresholds(self._lines[0], self.offsets[0], MOST))
            for base in self.temperatures:
                few = MOST // len(self.temperatures)
                self._try(self._thresholds(self._lines[0], base, few))
            return
        self._try(obvious(self.statistics))
        turns = PASSES * len(self._lines)
        followed = max(1, min(len(aims), self.room // (FEWEST * turns)))
        count = max(FEWEST, min(24, self.room // (followed * turns)))
        for chosen in torch.linspace(0, len(aims) - 1, followed).round().long():
            aim = aims[int(chosen)]
            for _ in range(PASSES):
                for line in self._lines:
                    best = self.offsets[aim(self.means).argmin()]
                    self._try(self._thresholds(line, best, count))

    @property
    def room(self) -> int:
        """Most offsets whose statistics are computed in one go through all."""
        dear = set(self.statistics.kind.names()) - CHEAP
        return ROOM // (self._outputs.numel() * (DEAR if dear else 1))

    def _temperatures(self) -> Tensor:
        scales = self.statistics.parts.get("scales")
        if scales is None or not self.statistics.kind.scores:
            return self.offsets[:0]
        return at_temperatures(TEMPERATURES, self.statistics.size, scales)

    def _try(self, offsets: Tensor) -> None:
        if not len(offsets):
            return
        self.offsets = torch.cat([self.offsets, offsets])
        self.means = torch.cat([self.means, self.predicted(offsets)])

    def _outputs_at(self, offsets: Tensor) -> Tensor:
        return self.statistics.outputs(offsets)[0].cpu()

    def _thresholds(self, line: Tensor, base: Tensor, most: int) -> Tensor:
        """Return offsets [L, d] on a line from a base, at about evenly many examples.

        The numbers of a line are moved by as much. Each of the offsets lies between two
        examples whose decisions it tells apart.
        """
        once = torch.zeros_like(base)
        once[line] = 1
        change = self._outputs_at(once[None]) - self._outputs
        column = int(change.sum(0).argmax())
        moved = change[:, column]
        if not self._apart:
            # Rows of log-probabilities are normalised again, so all columns change.
            others = change.sum(1) - moved
            moved = moved - others / (self._columns - 1)
        outputs = self._outputs_at(base[None])[moved > 0.5]
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
        found[:, line] += between[chosen.round().long(), None]
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
