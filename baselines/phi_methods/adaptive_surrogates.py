"""Adaptive surrogates: learn how a black-box metric weighs surrogate losses.

The metric is taken as a function psi of one smooth error rate per class. Its gradient
is regressed from differences of observed metrics on differences of the rates, and kept
non-negative: fewer errors do no harm. Gradient steps on the rates, so weighted, lead to
the next query.

Source: Jiang et al., ICML 2020; an implementation of our own. Differs: the regression
uses all queried phi, near ones more, where the paper spends new queries on
perturbations at every step, thousands in all. A step ends where a rate has moved by a
radius, which grows with successes and shrinks with failures. Rates are those of the
observe split.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from baselines.phi_methods.class_rates import (
    class_errors,
    knows_decisions,
    statistics_of,
)
from baselines.phi_methods.contract import RIVALS
from metricopt.methods.contract import Method, Preparation, Sees
from metricopt.methods.evolution import draw_seeds
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

NARROWER, WIDER = 0.7, 1.3
"""Factors of the radius after a failure and a success."""
LEAST_SHARE = 0.1
"""Share of the first radius below which no failure narrows it."""
SLOWEST = 1e-2
"""Least rate per unit of phi that a step counts on where the rates are saturated."""
STEPS_AT_ONCE = 5
"""Gradient steps that one radius is divided into."""
MOST_STEPS = 2 * STEPS_AT_ONCE


@RIVALS.register("adaptive-surrogates")
@dataclass(frozen=True)
class AdaptiveSurrogates(Method):
    """Weighted smooth error rates from phi = 0; returns the best observed phi.

    Attributes:
        radius: how far a rate may move before the next query.
        examples: number of examples of the observe split that a gradient step sees.
        ridge: ridge penalty of the regression, in squared rates.
    """

    sees: ClassVar[Sees] = "outputs and labels"
    radius: float = 0.1
    examples: int = 1_000
    ridge: float = 1e-4

    def suits(self, task: Task) -> bool:
        """Return whether the task has statistics of its outputs."""
        return knows_decisions(task)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Spend all queries of the budget on every row."""
        archive = Archive(task, budget, rows)
        searches = [
            _Search(self, statistics_of(task), task.size, seed)
            for seed in draw_seeds(rows, generator)
        ]
        first = min(searches[0].classes, budget.queries // 4)
        while archive.remaining:
            asked = [
                search.ask(archive.phi[row], archive.costs[row], first)
                for row, search in enumerate(searches)
            ]
            archive.query(torch.stack(asked)[:, None])
        return archive.result()


def surrogate_weights(
    rates: Tensor, costs: Tensor, here: int, *, ridge: float
) -> Tensor:
    """Return the gradient of the cost with respect to the rates, at one point.

    Non-negative least squares on differences to that point; a point counts half as much
    at the median distance.

    Args:
        rates: rates of n points, shape [n, K].
        costs: observed there, shape [n].
        here: index of the point.
        ridge: penalty of the squared weights.

    Returns:
        Weights >= 0, float64, shape [K].
    """
    moves = (rates - rates[here]).double()
    changes = (costs - costs[here]).double()
    squared = moves.square().sum(1)
    typical = squared[squared > 0].median() if bool((squared > 0).any()) else 1.0
    weight = torch.exp2(-squared / typical)[:, None].sqrt()
    size = rates.shape[1]
    penalty = ridge**0.5 * torch.eye(size, dtype=torch.float64)
    left = torch.cat([weight * moves, penalty]).numpy()
    right = np.concatenate([(weight[:, 0] * changes).numpy(), np.zeros(size)])
    return torch.from_numpy(nnls(left, right)[0])


class _Search:
    """One row: the rates of all its queries, and the radius."""

    def __init__(
        self,
        settings: AdaptiveSurrogates,
        statistics: ObservedStatistics,
        size: int,
        seed: int,
    ) -> None:
        self._settings, self._statistics = settings, statistics
        self._generator = torch.Generator().manual_seed(seed)
        self._radius = settings.radius
        self._is_guided = False
        self._rates = self._all_rates(torch.zeros(1, size))

    @property
    def classes(self) -> int:
        """Number of classes K, each with a rate."""
        return self._rates.shape[1]

    def ask(self, phi: Tensor, costs: Tensor, first: int) -> Tensor:
        """Return the phi [d] to query next.

        Args:
            phi: queried so far, shape [n, d].
            costs: their costs, shape [n].
            first: queries after the first one that move the rates at random.
        """
        self._learn(phi, costs)
        here = int(costs.argmin())
        weights = surrogate_weights(
            self._rates, costs, here, ridge=self._settings.ridge
        )
        self._is_guided = len(costs) > first and bool(weights.any())
        if not self._is_guided:
            weights = torch.randn(
                self.classes, generator=self._generator, dtype=torch.float64
            )
        return self._descend(phi[here], weights / weights.norm())

    def _learn(self, phi: Tensor, costs: Tensor) -> None:
        new = phi[len(self._rates) :]
        if len(new):
            self._rates = torch.cat([self._rates, self._all_rates(new)])
        if self._is_guided:
            better = bool(costs[-1] < costs[:-1].min())
            self._radius *= WIDER if better else NARROWER
            least = LEAST_SHARE * self._settings.radius
            self._radius = max(self._radius, least)

    @torch.no_grad()
    def _all_rates(self, phi: Tensor) -> Tensor:
        every = torch.arange(len(self._statistics))
        return class_errors(self._statistics.smooth(phi, every)).double()

    def _descend(self, start: Tensor, weights: Tensor) -> Tensor:
        """Follow the weighted rates until one of them has moved by the radius."""
        count = len(self._statistics)
        drawn = torch.randperm(count, generator=self._generator)
        drawn = drawn[: self._settings.examples]
        phi = start[None].clone()
        before, slope = self._slope(phi, drawn, weights)
        for _ in range(MOST_STEPS):
            steepness = slope.norm().item()
            if steepness == 0:
                break
            phi = phi - self._length(phi, slope, drawn) * slope / steepness
            rates, slope = self._slope(phi, drawn, weights)
            if (rates - before).abs().max() >= self._radius:
                break
        return phi[0]

    def _slope(
        self, phi: Tensor, drawn: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the rates [K] and the gradient [1, d] of their weighted sum."""
        phi = phi.detach().requires_grad_()
        rates = class_errors(self._statistics.smooth(phi, drawn))[0].double()
        (slope,) = torch.autograd.grad(rates @ weights, phi)
        return rates.detach(), slope

    @torch.no_grad()
    def _length(self, phi: Tensor, slope: Tensor, drawn: Tensor) -> float:
        """Return the step at which a rate moves by a part of the radius, to 1st order.

        The derivative along the slope is a difference, for all rates at once.
        """
        small = 1e-2
        along = slope / slope.norm()
        both = torch.cat([phi, phi - small * along])
        rates = class_errors(self._statistics.smooth(both, drawn)).double()
        speed = (rates[1] - rates[0]).abs().max().item() / small
        return self._radius / STEPS_AT_ONCE / max(speed, SLOWEST)
