"""Random search: perturb phi = 0, keep the best observation. The simplest search."""

from dataclasses import dataclass

import torch

from metricopt.methods.archive import Archive
from metricopt.methods.budget import Budget
from metricopt.methods.contract import METHODS, Method, Preparation
from metricopt.methods.result import FinetuneResult
from metricopt.tasks.task import Task

BLOCK = 16


@METHODS.register("random-search")
@dataclass(frozen=True)
class RandomSearch(Method):
    """Draws phi ~ N(0, deviation^2 I), queries it, keeps the best.

    Attributes:
        deviation: standard deviation of every coordinate.
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
        while archive.remaining:
            count = min(BLOCK, archive.remaining)
            noise = torch.randn(rows, count, task.size, generator=generator)
            archive.query(self.deviation * noise)
        return archive.result()
