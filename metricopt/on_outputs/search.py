"""The search of MetricOpt on outputs: which phi to query next, and when to stop.

One search has a value function of its own and knows all its queries.
"""

import math
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from metricopt.methods.known import KnownStatistics
from metricopt.metrics.constrained import constrained_cost
from metricopt.on_outputs.coordinates import Coordinates, Pace, descend
from metricopt.on_outputs.exact_offsets import is_decided, swept_offsets
from metricopt.on_outputs.handed_over import HandedOver
from metricopt.on_outputs.statistics_value import Explained, explain
from metricopt.on_outputs.within_bounds.value import explain_each
from metricopt.reading.outputs import VALUES
from metricopt.statistics.contract import Groups, anchored
from metricopt.tasks.observed_statistics import ObservedStatistics

SHIFTS = (-0.5, -0.3, -0.15, 0.15, 0.3, 0.5)
"""Shifts of all outputs, in units that move a statistic by about 1."""


NARROWER, WIDER = 0.85, 1.3
"""Factors of the trust region after a query that brought nothing, or a new best."""
PENALTY = 10.0
"""Penalty for leaving the trust region, in spreads of the observed costs."""
TOLERANCE, HOPELESS = 0.1, 0.5
"""Errors of prediction, in spreads of the observed costs, by which a metric counts as
identified, and as no function of the statistics."""
LEAST_SPREAD = 1e-6
MOST_DOUBLINGS = 3
"""Most doublings of the first moves, while the metric does not follow."""


@dataclass(frozen=True)
class SearchSettings:
    """How phi is searched for.

    Attributes:
        first_points: queries after phi = 0 and before the value function is asked.
        fine_tuned: how many of them come from the portfolio.
        first_move: how far they move the statistic that moves most.
        starts: best phi so far from which descent starts.
        steps: steps of the descent between two queries.
        step: about how far one of them moves the statistics.
        examples: examples of the observe split that the descent sees, drawn anew every
            time.
        kappa: greatest number of deviations that are taken off the predicted cost of a
            candidate; candidates take shares of it from 0 to 1.
        radius: radius of the first trust region: how far a statistic may move.
        trusted: predictions, the last ones, whose median error counts.
        enough: that error, in spreads of the observed costs, at which the search ends
            before its budget does; 0 for never.
    """

    first_points: int = 5
    fine_tuned: int = 2
    first_move: float = 0.15
    starts: int = 3
    steps: int = 20
    step: float = 0.03
    examples: int = 500
    kappa: float = 1.0
    radius: float = 0.2
    trusted: int = 3
    enough: float = 0.0


class Candidates(NamedTuple):
    """What may be queried, and is known without a query.

    Attributes:
        obvious: offsets that have seen the labels of observe, so that no descent that
            is cross-fitted may start there, [O, d].
        fine_tuned: snapshots of the portfolio, [S, d].
    """

    obvious: Tensor
    fine_tuned: Tensor


class OutputsSearch:
    """One search: what it knows, and the phi it asks for next.

    Candidates are known before any query, and so may be what was learned of the metric
    elsewhere, on another network.

    Attributes:
        each: what was observed of every phi, shape [n, 1 + M]; see `Task.observe_each`.
        costs: costs of every phi, shape [n].
        trials: predicted and observed cost of every phi the value function chose;
            under bounds, the objective's.
        identified_at: queries after which the metric was identified, and stayed so.
        shifted: shifts of all outputs that are queried where nothing explains the
            metric, [n, d].
    """

    def __init__(
        self,
        settings: SearchSettings,
        statistics: ObservedStatistics,
        along: Coordinates,
        candidates: Candidates,
        seed: int,
        elsewhere: KnownStatistics | None = None,
    ) -> None:
        self.settings, self.statistics, self.along = settings, statistics, along
        self.generator = torch.Generator().manual_seed(seed)
        self.phi = torch.empty(0, statistics.size)
        self.costs = torch.empty(0, dtype=torch.float64)
        self.each = torch.empty(0, 1, dtype=torch.float64)
        self.groups: Groups = {}
        self.fine_tuned, self.obvious = candidates.fine_tuned, candidates.obvious
        self.shifted = torch.empty(0, statistics.size)
        self.candidates = torch.cat([candidates.obvious, candidates.fine_tuned])
        self.candidate_groups: Groups = {}
        self._queried = torch.zeros(len(self.candidates), dtype=torch.bool)
        self.trials: list[tuple[float, float]] = []
        self._errors: list[list[float]] = []
        self.identified_at: int | None = None
        if len(self.candidates):
            self.candidate_groups = statistics.exact(self.candidates)
        self._seed = seed
        self._prior = elsewhere
        self._radius = settings.radius
        self._expected: Tensor | None = None
        self._handed_over: HandedOver | None = None

    @property
    def identified(self) -> bool:
        """Whether the last predictions came true: the metric is known."""
        return self._handed_over is None and self._relative_error <= TOLERANCE

    @property
    def settled(self) -> bool:
        """Whether they came so true that further queries would teach nothing."""
        return self.identified and self._relative_error < self.settings.enough

    @property
    def is_hopeless(self) -> bool:
        """Whether predictions are no better than the mean would be, or not known."""
        return self._handed_over is not None or self._relative_error > HOPELESS

    @property
    def untried(self) -> int:
        """Predictions that have to come true before anything is known of the metric."""
        return max(0, self.settings.trusted - len(self._errors))

    @property
    def is_flat(self) -> bool:
        """Whether all metrics had the same value at every phi that was queried."""
        return len(self.each) > 1 and torch.equal(self.each.amax(0), self.each.amin(0))

    @property
    def _is_still(self) -> bool:
        """Whether the metric of an unmet bound was the same in all queries."""
        still = self.each.amax(0) == self.each.amin(0)
        unmet = (still & (self.each[0] > 0))[1:]
        return len(self.each) > 1 and bool(unmet.any())

    @property
    def prediction_error(self) -> float:
        """Median error of the last predictions, in units of cost."""
        return self.prediction_errors[0]

    @property
    def prediction_errors(self) -> list[float]:
        """Median errors of the last predictions: of the cost, and of every excess."""
        last = self._errors[-self.settings.trusted :]
        if len(last) < self.settings.trusted:
            return [math.inf] * self.each.shape[1]
        return [median(errors) for errors in zip(*last, strict=True)]

    @property
    def _relative_error(self) -> float:
        """Greatest of the errors, in spreads of what was observed."""
        if self.each.shape[1] == 1:
            return self.prediction_error / self._spread
        spreads = self.each.std(0, correction=0).clamp_min(LEAST_SPREAD).tolist()
        pairs = zip(self.prediction_errors, spreads, strict=True)
        errors: list[float] = [error / spread for error, spread in pairs]
        if self._is_still:
            # How a bound comes to be met is not known while its metric stays the same.
            errors.append((TOLERANCE + HOPELESS) / 2)
        return max(errors)

    @property
    def _spread(self) -> float:
        return max(self._known_costs.std(correction=0).item(), LEAST_SPREAD)

    @property
    def known(self) -> KnownStatistics:
        """What the queries so far revealed, for use on another network."""
        count = len(self.groups[self.statistics.kind.near])
        return KnownStatistics(self.groups, self.costs[:count])

    @property
    def _known_costs(self) -> Tensor:
        more = () if self._prior is None else (self._prior.costs,)
        return torch.cat([self.costs, *more])

    def begin(self, each: Tensor) -> None:
        """Learn what was observed of phi = 0 [1, 1 + M]; what is known predicts it."""
        untouched = torch.zeros(1, self.statistics.size)
        if self._prior is None:
            self.learn(untouched, each)
        else:
            self.watch(untouched, each)

    def learn(self, phi: Tensor, each: Tensor) -> None:
        """Add observed phi [n, d] with what was observed, [n, 1 + M]."""
        costs = constrained_cost(each)
        if self._expected is not None:
            self.trials.append((self._expected[0].item(), each[0, 0].item()))
            self._errors.append((self._expected - each[0]).abs().tolist())
            better = not len(self.costs) or bool(costs[0] < self.costs.min())
            self._radius *= WIDER if better else NARROWER
            self._expected = None
        if self._handed_over is not None:
            self._handed_over.learn(costs)
        else:
            found = self.statistics.exact(phi)
            known = self.groups or {name: each[:0] for name, each in found.items()}
            self.groups = {
                name: torch.cat([known[name], found[name]]) for name in found
            }
        self.phi = torch.cat([self.phi, phi])
        self.costs = torch.cat([self.costs, costs])
        self.each = torch.cat([self.each.expand(-1, each.shape[1]), each])
        self._doubt()
        if not self.identified:
            self.identified_at = None
        elif self.identified_at is None:
            self.identified_at = len(self.costs)

    def watch(self, phi: Tensor, each: Tensor) -> None:
        """Predict what is observed, [1, 1 + M], of a phi [1, d], then learn it."""
        known = self.explained()
        groups = known.of_these(self.statistics.exact(phi))
        self._expected = known.value.means(groups)[0]
        self.learn(phi, each)

    def hand_over(self, root: Tensor, stream: np.random.RandomState) -> None:
        """Go on as CMA-ES from the best phi so far.

        The square root [d, d] of a covariance is what it starts with. It draws from a
        stream that all searches in lock-step share.
        """
        if self._handed_over is None:
            self.shifted = self._shifted()
            self._handed_over = HandedOver(self.shifted, root, self._seed, stream)

    def ask(self) -> Tensor:
        """Return the phi [d] to query next."""
        if self._handed_over is not None:
            return self._handed_over.ask(self.phi[self.costs.argmin()])
        first = self._prior is None and len(self.costs) <= self.settings.first_points
        if self._is_still and (place := self._obvious_left()) is not None:
            return self._candidate(place)
        if first or self.is_flat:
            return self._first_point()
        known = self.explained()
        descended = torch.cat([self._descend(known), self._exact(known)])
        groups = known.statistics.exact(descended)
        phi, mean, deviation = descended, *known.value.predict(groups)
        means = known.value.means(groups)
        if len(self.candidates):
            groups = known.of_these(self.candidate_groups)
            offered = known.value.predict(groups)
            means = torch.cat([means, known.value.means(groups)])
            phi = torch.cat([phi, self.candidates])
            mean = torch.cat([mean, offered[0].masked_fill(self._queried, math.inf)])
            deviation = torch.cat([deviation, offered[1]])
        kappa = self._kappa[torch.arange(len(phi)) % self.settings.starts]
        promise = (mean - kappa * deviation).nan_to_num(math.inf)
        chosen = int(promise.argmin())
        self._expected = means[chosen]
        if chosen >= len(descended):
            self._queried[chosen - len(descended)] = True
        return phi[chosen]

    def _shifted(self) -> Tensor:
        """Return the best phi so far with all outputs shifted, [n, d].

        One shift of all means something for values, and for labels decided one by one.
        """
        best, line = self.phi[self.costs.argmin()], torch.zeros(self.statistics.size)
        if self.statistics.kind.reads not in ("labels", *VALUES):
            return best[None][:0]
        place = self.statistics.parts.get("offsets", slice(0))
        line[place] = self.along.scale[place]
        return best + torch.tensor(SHIFTS)[:, None] * line

    def explained(self) -> Explained:
        """Return what the queries so far say of the metric."""
        if self.each.shape[1] > 1:
            count = len(self.groups[self.statistics.kind.near])
            return explain_each(self.statistics, self.groups, self.each[:count])
        if self._prior is None:
            return explain(self.statistics, self.groups, self.costs)
        more = self._prior.groups
        # Its own come first: the first one is the centre of the value function.
        both = {name: torch.cat([own, more[name]]) for name, own in self.groups.items()}
        return explain(self.statistics, both or more, self._known_costs)

    def _doubt(self) -> None:
        """Forget what is known where it does not predict: it would mislead."""
        enough = len(self.trials) >= self.settings.trusted
        if self._prior is not None and enough and self.is_hopeless:
            self._prior = None
            self.trials.clear()
            self._errors.clear()

    @property
    def _kappa(self) -> Tensor:
        return torch.linspace(0, self.settings.kappa, self.settings.starts)

    def _first_point(self) -> Tensor:
        """Return a candidate of the portfolio, or a random combination of directions.

        While the metric has not moved at all, each is twice as long as the last.
        """
        asked = len(self.costs)
        if asked <= self.settings.fine_tuned or self.is_flat:
            place = self._furthest()
            if place is not None:
                return self._candidate(place)
        doublings = min(MOST_DOUBLINGS, asked - 1) if self.is_flat else 0
        length = self.settings.first_move * 2**doublings
        return self.along.combination(length, self.generator)

    def _candidate(self, place: int) -> Tensor:
        """Return a candidate, which is not asked for again."""
        self._queried[place] = True
        return self.candidates[place]

    def _obvious_left(self) -> int | None:
        """Return the obvious candidate that goes furthest, of those not queried."""
        moved = self.obvious.norm(dim=1)
        moved[self._queried[: len(moved)]] = 0.0
        return int(moved.argmax()) if moved.any() else None

    def _furthest(self) -> int | None:
        """Return the candidate least like what was queried, of those not too far."""
        if not len(self.candidates):
            return None
        near = self.statistics.kind.near
        moved = self.candidate_groups[near]
        distance = torch.cdist(moved, self.groups[near]).min(1).values
        far = (moved - self.groups[near][0]).abs().amax(1)
        if not self.is_flat:
            distance[far > 2 * self.settings.first_move] = -torch.inf
        distance[self._queried] = -torch.inf
        place = int(distance.argmax())
        return place if distance[place] > 0 else None

    def _exact(self, known: Explained) -> Tensor:
        """Return phi [1, d] with the offsets that the value function likes best."""
        statistics = known.statistics
        if not is_decided(statistics):
            return torch.empty(0, statistics.size)
        phi = self.phi[self.costs.argmin()][None].clone()
        weights = torch.ones(1, len(statistics))
        outputs = statistics.outputs(phi)
        sweeps = swept_offsets(known.value, statistics, outputs, weights, caution=0.0)
        *_, offsets = sweeps
        phi[:, statistics.parts["offsets"]] += offsets
        return phi

    def _descend(self, known: Explained) -> Tensor:
        """Return candidates [starts, d] from descent on the value function."""
        settings, statistics = self.settings, known.statistics
        near = statistics.kind.near
        order = self.costs.argsort()[: settings.starts]
        places = order[torch.arange(settings.starts) % len(order)]
        rows = statistics.draw(settings.examples, self.generator)
        start = self.phi[places]
        exact = {name: values[places] for name, values in known.groups.items()}
        with torch.no_grad():
            there = statistics.smooth(start, rows)

        def promise(phi: Tensor) -> Tensor:
            groups = anchored(statistics.smooth(phi, rows), there, exact)
            mean, deviation = known.value.predict(groups)
            moved = (groups[near] - exact[near]).abs() / self._radius
            outside = (moved - 1).clamp_min(0).square().sum(1)
            return mean - self._kappa * deviation + PENALTY * self._spread * outside

        pace = Pace(settings.step, settings.steps)
        path = descend(promise, start, self.along.scale, pace)
        *_, last = path
        return last
