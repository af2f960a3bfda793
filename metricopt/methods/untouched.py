"""The control arm that does nothing: the pre-trained network, phi = 0."""

import torch

from metricopt.methods.budget import Budget
from metricopt.methods.contract import METHODS, Method, Preparation
from metricopt.methods.result import Checkpoint, FinetuneResult
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
