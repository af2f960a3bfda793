"""The contract of a method: a way to choose phi for a task within a budget."""

from abc import ABC, abstractmethod

import torch

from metricopt.observations import Budget
from metricopt.registry import Registry
from metricopt.result import FinetuneResult
from metricopt.task import Task


class Method(ABC):
    """A way to choose phi for a task within a budget.

    Rows are independent repetitions (meta-tests) run in lock-step; each starts at a
    phi of its own and is charged for its own queries plus all shared ones.
    """

    @abstractmethod
    def run(
        self, task: Task, budget: Budget, generator: torch.Generator, *, rows: int = 1
    ) -> FinetuneResult:
        """Choose phi for `rows` independent repetitions.

        Args:
            task: what to improve; counts queries.
            budget: what may be spent for one row.
            generator: source of all randomness.
            rows: number of repetitions R.

        Returns:
            The chosen phi [R, d] with what was spent; never more than the budget.
        """


METHODS: Registry[type[Method]] = Registry("method")
