"""The control arms of every comparison: nothing, the task loss alone, random search."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.result import (
    Archive,
    Budget,
    Checkpoint,
    FinetuneResult,
    best_so_far,
    last_step,
)
from metricopt.tasks.descent import (
    START_DEVIATION,
    loss_optimizer,
    loss_rate,
    paired_streams,
    run,
    starts,
)
from metricopt.tasks.task import Task


@METHODS.register("untouched")
class Untouched(Method):
    """Returns phi = 0; spends nothing."""

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Return zeros for every row."""
        phi = torch.zeros(rows, task.size)
        unknown = torch.full((rows,), torch.nan, dtype=torch.float64)
        return FinetuneResult(phi, 0, 0, 0, (Checkpoint(0, 0, phi, unknown),))


@METHODS.register("loss-only")
@dataclass(frozen=True)
class LossOnly(Method):
    """Steps on the loss gradient; returns the last phi and queries nothing.

    Attributes:
        optimizer: one of `PHI_OPTIMIZERS`, such as "sgd" or "adam".
        rate: learning rate of the optimizer; None for the one found for the task.
        start_deviation: phi_0 ~ N(0, start_deviation^2 I).
    """

    sees: ClassVar[Sees] = "loss gradients"
    optimizer: str = "sgd"
    rate: float | None = None
    start_deviation: float = START_DEVIATION

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Fine-tune every row for `budget.gradient_steps` steps."""
        path = self._path(task, budget, generator, rows)
        return last_step(path, shared_queries=0)

    def _path(
        self, task: Task, budget: Budget, generator: torch.Generator, rows: int
    ) -> Tensor:
        steps, rate = budget.gradient_steps, self.rate
        if rate is None:
            deviation = self.start_deviation
            rate = loss_rate(task, self.optimizer, steps, start_deviation=deviation)
        descent = paired_streams(generator).descent
        start = starts(task.size, rows, self.start_deviation, descent)
        factory = loss_optimizer(self.optimizer, rate, steps)
        return run(task, factory, start, steps, descent)[0]


@METHODS.register("loss-only-dense")
@dataclass(frozen=True)
class LossOnlyDense(LossOnly):
    """Evaluates the metric at every step and returns the best phi of each row.

    Source: Huang et al., CVPR 2021, "Cross-entropy finetune + dense metric eval".
    """

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Fine-tune, spending one query on each of the last steps of every row.

        Raises:
            ConfigError: if the budget allows no query.
        """
        if budget.queries < 1:
            raise ConfigError("dense evaluation needs a budget of at least 1 query")
        path = self._path(task, budget, generator, rows)
        first = max(0, path.shape[1] - budget.queries)
        visited = path[:, first:]
        costs = task.observe(visited.flatten(0, 1)).view(rows, -1)
        return best_so_far(visited, costs, first_step=first)


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
