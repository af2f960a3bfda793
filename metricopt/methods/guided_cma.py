"""Guided CMA-ES: loss gradients say where to look, a value function what to query.

Ours, not the papers'. Three changes to plain CMA-ES on the adapter:

1. The initial covariance comes from mini-batch loss gradients at phi = 0. This is eq.
   (3) of MetricOpt, but gradients keep their lengths. The assumption is that the metric
   is sensitive to the same directions as the loss. It costs no metric query.
2. The value function of MetricOpt is fitted online to every queried phi.
3. Each generation draws more candidates than it queries; only those which the value
   function ranks best are queried. CMA-ES then learns from true costs alone.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from metricopt.algorithm1.objective import Points, objective
from metricopt.algorithm1.recipe import GAMMA, Recipe
from metricopt.algorithm1.value_function import Standardisation, ValueFunction
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.evolution import (
    GRADIENTS,
    ISOTROPIC,
    covariance_root,
    draw_seeds,
    evolution_strategies,
    spend,
)
from metricopt.methods.lines_of_phi import best_shifts, search_lines
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.process.keeping import one_thread
from metricopt.tasks.task import Task

FIT_BATCH = 128


@METHODS.register("guided-cma")
@dataclass(frozen=True)
class GuidedCMA(Method):
    """CMA-ES guided by loss gradients and an online value function.

    Attributes:
        deviation: initial root-mean-square coordinate of a candidate.
        gradients: mini-batch loss gradients the covariance is estimated from.
        isotropic: share of the initial covariance that is isotropic.
        oversampling: candidates drawn per candidate queried; 1 switches the value
            function off.
        warm_up: queries before the value function is used.
        surrogate_until: queries after which plain CMA-ES continues: the remaining
            differences are then finer than the value function resolves.
        fit_steps: gradient steps on the value function per generation.
        noise: assumed standard deviation of an observed cost, in units of cost.
        lines: lines of phi, [L, d], along which is searched first, one after the other;
            CMA-ES starts from the best point. None for no lines.
        on_lines: share of the budget that lines may take.
    """

    sees: ClassVar[Sees] = "loss gradients"
    deviation: float = 0.5
    gradients: int = GRADIENTS
    isotropic: float = ISOTROPIC
    oversampling: int = 4
    warm_up: int = 24
    surrogate_until: int = 500
    fit_steps: int = 20
    noise: float = 0.003
    lines: Tensor | None = None
    on_lines: float = 1 / 2

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
        root = covariance_root(task, generator, self.gradients, self.isotropic)
        archive = Archive(task, budget, rows)
        start = torch.zeros(rows, task.size)
        if self.lines is not None:
            share = round(self.on_lines * archive.remaining)
            start = search_lines(archive, self.lines, share)
        shifts = best_shifts(archive)
        seeds = draw_seeds(rows, generator)
        searches = evolution_strategies(task.size, self.deviation, seeds)
        surrogates = [OnlineValueFunction(each, self, generator) for each in start]

        def ask(row: int) -> npt.NDArray[np.float64]:
            return self._promising(searches[row], surrogates[row], archive, row, root)

        spend(archive, searches, ask, root, start)
        return replace(archive.result(), obvious=shifts)

    def _promising(
        self,
        search: object,
        surrogate: "OnlineValueFunction",
        archive: Archive,
        row: int,
        root: Tensor,
    ) -> npt.NDArray[np.float64]:
        """Return the candidates of one search to query, in CMA-ES coordinates."""
        ask, count = search.ask, search.popsize  # type: ignore[attr-defined]
        in_use = self.warm_up <= archive.spent < self.surrogate_until
        if self.oversampling == 1 or not in_use:
            return np.asarray(ask(), dtype=np.float64)
        with one_thread():
            surrogate.fit(archive.phi[row], archive.costs[row])
            drawn = np.asarray(ask(count * self.oversampling), dtype=np.float64)
            phi = torch.tensor(drawn, dtype=root.dtype) @ root.T
            order = surrogate.predict(phi).argsort()[:count]
        chosen: npt.NDArray[np.float64] = drawn[order.numpy()]
        return chosen


class OnlineValueFunction:
    """A value function refitted to all queries of one search, warm-started.

    The search starts at a phi [d].
    """

    def __init__(
        self, start: Tensor, settings: GuidedCMA, generator: torch.Generator
    ) -> None:
        self.start = start
        self.settings = settings
        self.generator = generator
        self.value_function = ValueFunction(len(start), generator)
        self.recipe = Recipe(mining="multi-similarity")
        self.optimizer = torch.optim.Adam(
            self.value_function.parameters(), lr=5e-3, weight_decay=1e-4
        )

    def fit(self, phi: Tensor, costs: Tensor) -> None:
        """Fit to queried phi [n, d] and costs [n], by L_v of eq. (2)."""
        cost = costs.float()
        self.value_function.standardise(
            Standardisation(
                phi.mean(0),
                phi.std(0).clamp_min(1e-3),
                cost.mean(),
                cost.std().clamp_min(1e-4),
            )
        )
        noise = torch.full_like(cost, self.settings.noise)
        self.value_function.train()
        for _ in range(self.settings.fit_steps):
            drawn = torch.randperm(len(phi), generator=self.generator)[:FIT_BATCH]
            points = Points(phi[drawn][None], cost[drawn][None], noise[drawn][None])
            self.optimizer.zero_grad()
            loss = objective(
                self.value_function, points, self.recipe, self.generator, gamma=GAMMA
            )
            loss.backward()
            self.optimizer.step()
        self.value_function.eval()

    @torch.no_grad()
    def predict(self, phi: Tensor) -> Tensor:
        """Return the predicted cost of phi [n, d], counted from the start; [n]."""
        predicted: Tensor = self.value_function(self.start + phi)
        return predicted
