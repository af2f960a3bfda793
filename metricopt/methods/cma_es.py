"""CMA-ES on the adapter: the rival to beat, counted in metric queries."""

from dataclasses import dataclass

import numpy as np
import torch

from metricopt.methods.archive import Archive
from metricopt.methods.budget import Budget
from metricopt.methods.contract import METHODS, Method, Preparation
from metricopt.methods.evolution import draw_seeds, evolution_strategy, tell
from metricopt.methods.result import FinetuneResult
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
        searches = [
            evolution_strategy(task.size, self.deviation, seed)
            for seed in draw_seeds(rows, generator)
        ]
        while archive.remaining:
            asked = [np.asarray(search.ask()) for search in searches]
            candidates = torch.tensor(np.stack(asked), dtype=torch.float32)
            costs = archive.query(candidates[:, : archive.remaining])
            if costs.shape[1] == candidates.shape[1]:
                tell(searches, asked, costs)
        return archive.result()
