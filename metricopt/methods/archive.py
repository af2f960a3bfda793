"""The archive that search methods share: all queries made, and the best so far."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.methods.budget import Budget
from metricopt.methods.result import Checkpoint, FinetuneResult
from metricopt.tasks.task import Task

CHECKPOINTS = (1, 10, 20, 50, 100, 150, 250, 500, 750, 1_000, 1_500, 2_500, 5_000)


class Archive:
    """All queries of R searches in lock-step; the first of each is phi = 0.

    Args:
        task: the task to query.
        budget: limits the queries of every row.
        rows: number of searches R.

    Raises:
        ConfigError: if the budget allows no query.
    """

    def __init__(self, task: Task, budget: Budget, rows: int) -> None:
        if budget.queries < 1:
            raise ConfigError("a search by queries needs a budget of at least 1 query")
        self.task = task
        self.budget = budget
        self.rows = rows
        self.phi = torch.empty(rows, 0, task.size)
        self.costs = torch.empty(rows, 0, dtype=torch.float64)
        self.query(torch.zeros(rows, 1, task.size))

    @property
    def spent(self) -> int:
        """Queries made for each row."""
        return self.costs.shape[1]

    @property
    def remaining(self) -> int:
        """Queries left for each row."""
        return self.budget.queries - self.spent

    def query(self, phi: Tensor) -> Tensor:
        """Query phi [R, n, d] and return the costs [R, n]."""
        costs = self.task.observe(phi.flatten(0, 1)).view(phi.shape[:2])
        self.phi = torch.cat([self.phi, phi], dim=1)
        self.costs = torch.cat([self.costs, costs], dim=1)
        return costs

    def best(self, queries: int | None = None) -> tuple[Tensor, Tensor]:
        """Return phi [R, d] and cost [R] of the best of the first queries."""
        cost, index = self.costs[:, :queries].min(1)
        return self.phi[torch.arange(self.rows), index], cost

    def result(self) -> FinetuneResult:
        """Return the best phi of every row, with checkpoints on the way."""
        marks = [mark for mark in CHECKPOINTS if mark < self.spent] + [self.spent]
        checkpoints = tuple(Checkpoint(0, mark, *self.best(mark)) for mark in marks)
        return FinetuneResult(self.best()[0], self.spent, 0, 0, checkpoints)
