"""The choice within bounds: the best objective of what is likely to meet them all.

phi is fitted anew without each fold and judged on it, as without bounds. What is just
within a bound on the observe split misses it on every second other split, so phi is
fitted to tighter bounds: the margin grows until they are met with enough probability.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from metricopt.methods.bounds import Front
from metricopt.metrics.constrained import Bounds
from metricopt.on_outputs.coordinates import Reach, reaches
from metricopt.on_outputs.cross_fitting import Clock, CrossFitting, followed
from metricopt.on_outputs.looks import chance_of, simplest
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.on_outputs.within_bounds.front import is_best, spread_out
from metricopt.on_outputs.within_bounds.held import Elsewhere, Held
from metricopt.on_outputs.within_bounds.offsets import OffsetsWithin
from metricopt.on_outputs.within_bounds.preference import KEPT, LEAST_KEPT, Preference
from metricopt.on_outputs.within_bounds.sweeps import is_swept

WITHOUT_OFFSETS = (0.0, 2.0, 4.0)
"""Margins where no offsets are swept, in standard errors of the untouched network."""
STEEPEST = 3.0
"""Largest slope of a descent within bounds, in cost by coordinate. An excess is charged
so steeply that Adam would go on for long after one step across a bound."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen within the bounds.

    Attributes:
        best: the best objective of what meets them with enough probability, or else
            the best by `Preference.order`.
        untouched: phi = 0.
        front: what else can be had.
    """

    best: Held
    untouched: Held
    front: Front


class Choice:
    """What one search can choose from, on folds of its own."""

    def __init__(
        self,
        search: OutputsSearch,
        known: Explained,
        settings: CrossFitting,
        generator: torch.Generator,
        bounds: Bounds,
        is_late: Clock,
    ) -> None:
        self._is_late = is_late
        self._search, self._known, self._bounds = search, known, bounds
        self._settings, self._generator = settings, generator
        self._found = reaches(known.statistics, search.along.scale, search.fine_tuned)
        self._elsewhere = Elsewhere(search, known, settings, generator)

    def made(self) -> Chosen:
        """Return what is chosen, and the front."""
        statistics = self._known.statistics
        nothing = torch.zeros(1, statistics.size)
        views = statistics.views(nothing)
        untouched = self._elsewhere.held(
            nothing[0], "nothing", statistics, views, views
        )
        offsets = self._offsets()
        if offsets is None:
            margins = (k * untouched.errors for k in WITHOUT_OFFSETS)
            held = [each for margin in margins for each in self._descended(margin)]
            best = self._best(held, Preference(untouched, self._bounds))
            return Chosen(best, untouched, self._front_of_queried())
        sweep = OffsetsWithin(self._elsewhere, offsets, self._bounds, untouched.errors)
        preference = Preference(untouched, self._bounds, sweep.constant)
        held = [sweep.within(preference)]
        more = "adapter" in statistics.parts or not sweep.is_exhaustive
        # Scales of outputs are swept all alike; of their own they may reach further.
        more |= sweep.has_temperatures and not self._bounds.is_enough(held[0].all_met)
        if more:
            held += self._descended(sweep.margin * sweep.scale)
        return Chosen(self._best(held, preference), untouched, sweep.front())

    def _offsets(self) -> Reach | None:
        """Return output offsets alone, if there are any that can be swept."""
        if not is_swept(self._known.statistics):
            return None
        alone = next((reach for reach in self._found if reach.is_cheap), None)
        # Where there is nothing else to move, all of phi are offsets.
        return alone or replace(self._found[0], name="output offsets")

    def _best(self, held: list[Held], preference: Preference) -> Held:
        """Return the simplest that is as good as the best of those within bounds.

        Where none is, the best by the preference, which may be the untouched network.
        """
        best = preference.best([preference.untouched, *held])
        if not self._bounds.is_enough(best.all_met):
            return best
        kept = KEPT if preference.is_of_use(best) else LEAST_KEPT
        enough = [
            each
            for each in held
            if self._bounds.is_enough(each.all_met) and preference.is_of_use(each, kept)
        ]
        if not enough:
            return best
        costs = torch.stack([each.objective for each in enough])
        return enough[simplest(costs[:, 0], chance_of(costs))]

    def _descended(self, margin: Tensor) -> Iterator[Held]:
        """Yield what descents lead to that keep off the bounds by a margin [M]."""
        value = self._elsewhere.value.with_margin(margin)
        found = self._found
        if any(not reach.is_cheap for reach in found) and self._offsets() is not None:
            found = [reach for reach in found if not reach.is_cheap]
        settings = replace(self._settings, steepest=STEEPEST)
        generator = self._generator
        folds, is_late = self._elsewhere.folds, self._is_late
        for each in followed(value, found, settings, folds, generator, is_late):
            best, statistics = each.best, each.best.reach.statistics
            seen = statistics.views(best.moved[None])
            phi = best.reach.whole(best.moved)
            yield self._elsewhere.held(
                phi, best.reach.name, statistics, each.held_out, seen
            )

    def _front_of_queried(self) -> Front:
        """Return the front of what was queried and of the portfolio."""
        groups, phi = self._known.groups, self._search.phi
        if len(self._search.candidates):
            more = self._known.of_these(self._search.candidate_groups)
            groups = {name: torch.cat([groups[name], more[name]]) for name in groups}
            phi = torch.cat([phi, self._search.candidates])
        values = self._elsewhere.value.means(groups)[:, list(self._bounds.axes)]
        best = is_best(values).nonzero().flatten()
        best = best[spread_out(values[best])]
        return Front(values[best], values[best], phi[best])
