"""The search of MetricOpt on outputs: which phi to query next, and when to stop.

One search has a value function of its own and knows all its queries.
"""

import math
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from metricopt.methods.evolution import evolution_strategy
from metricopt.methods.outputs.cross_fitting import CrossFitted, CrossFitting, cross_fit
from metricopt.statistics.contract import Groups
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.values.statistics_value import StatisticsValueFunction

NARROWER, WIDER = 0.85, 1.3
"""Factors of the trust region after a query that brought nothing, or a new best."""
PENALTY = 10.0
"""Of leaving the trust region, in spreads of the observed costs."""
TOLERANCE, HOPELESS = 0.1, 0.5
"""Errors of prediction, in spreads of the observed costs, by which a metric counts as
identified, and as no function of the statistics."""
MOST_DOUBLINGS = 3
"""Of the first moves, while the metric does not follow."""
LEADING = 0.05
"""Directions count that move the rates by this share of the first, or more."""
DEVIATION = 0.3
"""Of CMA-ES, where it takes over."""


@dataclass(frozen=True)
class SearchSettings:
    """How phi is searched for.

    Attributes:
        first_points: queries after phi = 0 and before the value function is asked.
        first_move: how far they move the rate that moves most.
        starts: best phi so far from which descent starts.
        steps: of the descent between two queries.
        step: about how far one of them moves the rates.
        examples: of the observe split that the descent sees, drawn anew every time.
        kappa: greatest number of deviations that are taken off the predicted cost of a
            candidate; candidates take shares of it from 0 to 1.
        radius: of the first trust region: how far a rate may move.
        trusted: predictions, the last ones, whose median error counts.
    """

    first_points: int = 5
    first_move: float = 0.15
    starts: int = 3
    steps: int = 20
    step: float = 0.03
    examples: int = 500
    kappa: float = 1.0
    radius: float = 0.2
    trusted: int = 3


@dataclass(frozen=True)
class Directions:
    """Directions of phi in which rates move, at phi = 0.

    Attributes:
        vectors: unit vectors, that which moves them most first, shape [r, d].
        rates: what a unit of each does to the rates, shape [q, r].
    """

    vectors: Tensor
    rates: Tensor

    @property
    def norm(self) -> float:
        """How far the rates move, as a root mean square, per unit of every vector."""
        return float(self.rates.square().sum(1).mean().sqrt())


def directions(
    statistics: ObservedStatistics, size: int, generator: torch.Generator
) -> Directions:
    """Return the leading right singular vectors of d rates / d phi at phi = 0."""
    rows = torch.randperm(len(statistics), generator=generator)[:1_000]
    phi = torch.zeros(1, size, requires_grad=True)
    rates = statistics.smooth(phi, rows)[statistics.kind.near][0]
    gradients = [
        torch.autograd.grad(rate, phi, retain_graph=True)[0][0] for rate in rates
    ]
    left, values, right = torch.linalg.svd(torch.stack(gradients), full_matrices=False)
    kept = values > LEADING * values[0]
    return Directions(right[kept], (left * values)[:, kept])


class OutputsSearch:
    """One search: what it knows, and the phi it asks for next.

    Args:
        settings: of the search.
        statistics: of the observe split.
        along: directions that move them.
        root: of the covariance CMA-ES starts with, shape [d, d].
        seed: of all randomness.

    Attributes:
        trials: predicted and observed cost of every phi the value function chose.
    """

    def __init__(
        self,
        settings: SearchSettings,
        statistics: ObservedStatistics,
        along: Directions,
        root: Tensor,
        seed: int,
    ) -> None:
        self.settings, self.statistics = settings, statistics
        self.along, self.root, self.seed = along, root, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.phi = torch.empty(0, len(root))
        self.costs = torch.empty(0, dtype=torch.float64)
        self.groups: Groups = {}
        self.trials: list[tuple[float, float]] = []
        self._radius = settings.radius
        self._expected: float | None = None
        self._evolution: _Evolution | None = None

    @property
    def identified(self) -> bool:
        """Whether the last predictions came true: the metric is known."""
        return self._evolution is None and self._error <= TOLERANCE

    @property
    def is_hopeless(self) -> bool:
        """Whether predictions are no better than the mean would be."""
        return self._error > HOPELESS

    @property
    def _error(self) -> float:
        """Median error of the last predictions, in spreads of the observed costs."""
        last = self.trials[-self.settings.trusted :]
        if len(last) < self.settings.trusted:
            return math.inf
        return median(abs(mean - cost) for mean, cost in last) / self._spread

    @property
    def _is_flat(self) -> bool:
        return bool(self.costs.max() == self.costs.min())

    @property
    def _spread(self) -> float:
        return max(self.costs.std().item(), 1e-6)

    def learn(self, phi: Tensor, costs: Tensor) -> None:
        """Add observed phi [n, d] with their costs [n]."""
        if self._expected is not None:
            self.trials.append((self._expected, costs[0].item()))
            better = bool(costs[0] < self.costs.min())
            self._radius *= WIDER if better else NARROWER
            self._expected = None
        if self._evolution is not None:
            self._evolution.learn(costs)
        else:
            found = self.statistics.exact(phi)
            known = self.groups or {name: each[:0] for name, each in found.items()}
            self.groups = {
                name: torch.cat([known[name], found[name]]) for name in found
            }
        self.phi = torch.cat([self.phi, phi])
        self.costs = torch.cat([self.costs, costs])

    def hand_over(self) -> None:
        """Go on as CMA-ES from the best phi so far."""
        if self._evolution is None:
            best = self.phi[self.costs.argmin()]
            self._evolution = _Evolution(best, self.root, self.seed)

    def ask(self) -> Tensor:
        """Return the phi [d] to query next."""
        if self._evolution is not None:
            return self._evolution.ask()
        if len(self.costs) <= self.settings.first_points or self._is_flat:
            return self._first_point()
        value = self._value_function()
        candidates = self._descend(value)
        mean, deviation = value.predict(self.statistics.exact(candidates))
        promise = mean - self._kappa * deviation
        chosen = int(promise.argmin())
        self._expected = mean[chosen].item()
        return candidates[chosen]

    def cross_fit(
        self, settings: CrossFitting, generator: torch.Generator
    ) -> CrossFitted:
        """Follow the value function from phi = 0 as far as held-out folds gain."""
        return cross_fit(
            self._value_function(),
            self.statistics,
            settings,
            size=self.phi.shape[1],
            rate=self._rate,
            generator=generator,
        )

    @property
    def _rate(self) -> float:
        """Learning rate of Adam at which a step moves the rates as wanted."""
        return self.settings.step / max(self.along.norm, 1e-12)

    @property
    def _kappa(self) -> Tensor:
        return torch.linspace(0, self.settings.kappa, self.settings.starts)

    def _value_function(self) -> StatisticsValueFunction:
        near = self.statistics.kind.near
        return StatisticsValueFunction(self.groups, self.costs, near=near)

    def _first_point(self) -> Tensor:
        """Return a random combination of the directions, as long as is wanted.

        While the metric has not moved at all, each is twice as long as the last.
        """
        rates, vectors = self.along.rates, self.along.vectors
        noise = torch.randn(len(vectors), generator=self.generator)
        # Alike in what they do to the rates, not in their length.
        noise = noise / rates.norm(dim=0)
        doublings = min(MOST_DOUBLINGS, len(self.costs) - 1) if self._is_flat else 0
        move = self.settings.first_move * 2**doublings
        phi: Tensor = noise @ vectors * (move / (rates @ noise).abs().max())
        return phi

    def _descend(self, value: StatisticsValueFunction) -> Tensor:
        """Return candidates [starts, d] from descent on the value function."""
        settings, near = self.settings, self.statistics.kind.near
        order = self.costs.argsort()[: settings.starts]
        places = order[torch.arange(settings.starts) % len(order)]
        drawn = torch.randperm(len(self.statistics), generator=self.generator)
        rows = drawn[: settings.examples]
        phi = self.phi[places].clone().requires_grad_()
        exact = {name: values[places] for name, values in self.groups.items()}
        with torch.no_grad():
            smooth = self.statistics.smooth(phi, rows)
            shift = {name: exact[name] - smooth[name] for name in smooth}
        optimizer = torch.optim.Adam([phi], lr=self._rate, eps=1e-12)
        for _ in range(settings.steps):
            found = self.statistics.smooth(phi, rows)
            groups = {name: found[name] + shift[name] for name in found}
            mean, deviation = value.predict(groups)
            moved = (groups[near] - exact[near]).abs() / self._radius
            outside = (moved - 1).clamp_min(0).square().sum(1)
            promise = mean - self._kappa * deviation
            optimizer.zero_grad()
            (promise + PENALTY * self._spread * outside).sum().backward()
            optimizer.step()
        return phi.detach()


class _Evolution:
    """CMA-ES asked for one candidate at a time."""

    def __init__(self, start: Tensor, root: Tensor, seed: int) -> None:
        self._start, self._root = start, root
        self._strategy = evolution_strategy(len(start), DEVIATION, seed)
        self._asked = list(self._strategy.ask())
        self._costs: list[float] = []

    def ask(self) -> Tensor:
        """Return the next candidate [d]."""
        candidate = torch.tensor(self._asked[len(self._costs)], dtype=torch.float32)
        return self._start + candidate @ self._root.T

    def learn(self, costs: Tensor) -> None:
        """Take the cost [1] of the candidate that was asked for last."""
        self._costs += costs.tolist()
        if len(self._costs) == len(self._asked):
            self._strategy.tell(self._asked, self._costs)
            self._asked, self._costs = list(self._strategy.ask()), []
