"""CMA-ES on the adapter: the rival to beat, counted in metric queries.

Source: Hansen, "The CMA Evolution Strategy: A Tutorial", 2016; the package `cma`.
"""

from dataclasses import dataclass

import torch

from metricopt.methods.contract import METHODS, Method, Preparation
from metricopt.methods.evolution import draw_seeds, evolution_strategies, spend
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.tasks.task import Task


@METHODS.register("cma-es")
@dataclass(frozen=True)
class CMAES(Method):
    """Covariance matrix adaptation from phi = 0; returns the best observed phi.

    Attributes:
        deviation: initial step size sigma of every coordinate.

    Source: Hansen's `cma` package with its default population 4 + floor(3 ln d).
    """

    deviation: float = 0.5

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
        seeds = draw_seeds(rows, generator)
        spend(archive, evolution_strategies(task.size, self.deviation, seeds))
        return archive.result()
