"""Output offsets within bounds: the least margin that is enough, and the front."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from metricopt.methods.bounds import Front
from metricopt.metrics.constrained import Bounds, constrained_cost, met
from metricopt.on_outputs.coordinates import Reach
from metricopt.on_outputs.within_bounds.front import (
    MOST,
    SMALL,
    is_best,
    spread_out,
    towards,
)
from metricopt.on_outputs.within_bounds.held import Elsewhere, Held
from metricopt.on_outputs.within_bounds.preference import Preference
from metricopt.on_outputs.within_bounds.sweeps import Aim, Sweeps

MARGINS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Margins of the bounds, in standard errors of their metrics, in turn."""
FINER = 7
"""Margins that are tried around the best of these."""
FEWEST = 20
"""Points of a front of many examples; of few there are more."""
KEPT = 30
"""Best offsets for every margin that are fitted without each fold, too."""


class OffsetsWithin:
    """Choices of output offsets alone, with margins in standard errors `scale` [M].

    Attributes:
        margin: what was chosen at last keeps so many standard errors off the bounds.
        scale: standard errors of the bounded metrics there.
    """

    def __init__(
        self, elsewhere: Elsewhere, reach: Reach, bounds: Bounds, scale: Tensor
    ) -> None:
        self._elsewhere, self._reach, self._bounds = elsewhere, reach, bounds
        self.margin = 0.0
        self.scale = scale
        self._sweeps = Sweeps(reach.statistics, elsewhere.value)
        self._sweeps.run([*map(self._aim, MARGINS), *self._along_front()])
        means = self._sweeps.means
        aims = torch.stack([self._aim(margin)(means) for margin in MARGINS])
        kept = max(1, min(KEPT, self._sweeps.room // (20 * len(MARGINS))))
        best = aims.argsort(dim=1, stable=True)[:, :kept].flatten()
        self._points = self._front_points()
        self._pool = torch.cat([best, self._points]).unique()
        offsets = self._sweeps.offsets[self._pool]
        # By what each row sees: the last one sees all.
        self._means = torch.stack(
            [self._sweeps.predicted(offsets, row) for row in elsewhere.kept]
        )

    @property
    def is_exhaustive(self) -> bool:
        """Whether all that offsets can do was tried."""
        return self._sweeps.is_exhaustive

    @property
    def has_temperatures(self) -> bool:
        """Whether temperatures were swept, too: a bound may be on a score."""
        return len(self._sweeps.temperatures) > 0

    @property
    def constant(self) -> float:
        """Least cost of decisions that are the same for all and meet the bounds."""
        means = self._sweeps.constant
        return min(means[met(means), 0].tolist(), default=math.inf)

    def within(self, preference: Preference) -> Held:
        """Return the offsets of the margin that is preferred."""
        tried: dict[float, Held] = {}

        def best_margin() -> float:
            best = preference.best(list(tried.values()))
            return next(margin for margin in tried if tried[margin] is best)

        for margin in MARGINS:
            tried[margin] = self._at(margin)
            self.scale = tried[margin].errors
            if self._bounds.is_enough(tried[margin].all_met):
                break
        best = best_margin()
        self.scale = tried[best].errors
        place = MARGINS.index(best)
        near = [*tried][max(0, place - 1) : place + 2]
        for margin in torch.linspace(near[0], near[-1], FINER + 2).tolist():
            if margin not in tried:
                tried[margin] = self._at(margin)
        self.margin = best_margin()
        return tried[self.margin]

    def front(self) -> Front:
        """Return the front, with what cross-fitting says of each of its points."""
        sweeps, columns = self._sweeps, list(self._bounds.axes)
        values = sweeps.means[self._points][:, columns]
        scale = (values.amax(0) - values.amin(0)).clamp_min(SMALL)
        means, elsewhere = self._means[:, :, columns], []
        for point in values:
            aim = towards(point, scale)
            chosen = torch.stack([aim(row).argmin() for row in means[:-1]])
            elsewhere.append(self._held_out(chosen)[0, columns])
        phi = [self._reach.whole(each) for each in sweeps.offsets[self._points]]
        return Front(values, torch.stack(elsewhere), torch.stack(phi))

    def _aim(self, margin: float) -> Aim:
        """Return the aim of the best objective within bounds tightened by a margin."""

        def aim(means: Tensor) -> Tensor:
            tighter = means.clone()
            tighter[:, 1:] += margin * self.scale
            return constrained_cost(tighter)

        return aim

    def _along_front(self) -> Iterator[Aim]:
        """Yield aims at points between the ends of the front."""
        axes = list(self._bounds.axes)
        for weights in _directions(len(axes)):

            def aim(means: Tensor, weights: Tensor = weights) -> Tensor:
                values = means[:, axes]
                low, high = values[values.argmin(0)].aminmax(dim=0)
                return towards(low, (high - low).clamp_min(SMALL) / weights)(values)

            yield aim

    def _front_points(self) -> Tensor:
        values = self._sweeps.means[:, list(self._bounds.axes)]
        best = is_best(values).nonzero().flatten()
        most = max(FEWEST, min(MOST, self._sweeps.room // 20))
        return best[spread_out(values[best], most)]

    def _at(self, margin: float) -> Held:
        """Return the offsets that are best with a margin, as folds see them."""
        chosen = torch.stack([self._aim(margin)(row).argmin() for row in self._means])
        offsets, statistics = self._offsets(chosen), self._reach.statistics
        held_out = statistics.held_out(offsets[:-1], self._elsewhere.folds)
        seen, phi = statistics.views(offsets[-1:]), self._reach.whole(offsets[-1])
        name = self._reach.name
        return self._elsewhere.held(phi, name, statistics, held_out, seen)

    def _held_out(self, chosen: Tensor) -> Tensor:
        """Return predictions [1, 1 + M] of held-out examples, with a choice by fold."""
        statistics, elsewhere = self._reach.statistics, self._elsewhere
        views = statistics.held_out(self._offsets(chosen), elsewhere.folds)
        return elsewhere.pooled(statistics, views)

    def _offsets(self, chosen: Tensor) -> Tensor:
        """Return the offsets that rows [R] have chosen, [R, m]."""
        return self._sweeps.offsets[self._pool[chosen]]


def _directions(metrics: int) -> Iterator[Tensor]:
    """Yield weights of metrics, evenly over the simplex, without its corners."""
    if metrics == 1:
        return
    if metrics == 2:
        for share in torch.linspace(0, 1, 10)[1:-1]:
            yield torch.stack([share, 1 - share]).double()
        return
    parts = 6
    for first in range(1, parts - 1):
        for second in range(1, parts - first):
            weights = (first, second, parts - first - second)
            yield torch.tensor(weights, dtype=torch.float64) / parts
