"""A wrapper of a task that remembers every query."""

import torch
from torch import Tensor

from metricopt.tasks.recorded_task import OnQuery, RecordedTask
from metricopt.tasks.task import Task


class WitnessedTask(RecordedTask):
    """Another task, with every query on the whole observe split remembered.

    Args:
        inner: any task.
        rows: see `RecordedTask`.
        on_query: see `RecordedTask`.
    """

    def __init__(
        self,
        inner: Task,
        *,
        rows: int | None = None,
        on_query: OnQuery | None = None,
    ) -> None:
        super().__init__(inner, rows=rows, on_query=on_query)
        self._seen: list[tuple[Tensor, Tensor]] = []

    @property
    def phi(self) -> Tensor:
        """All phi queried, in order, shape [n, d]."""
        return torch.cat([torch.empty(0, self.size), *(phi for phi, _ in self._seen)])

    @property
    def costs(self) -> Tensor:
        """Their costs, shape [n]."""
        none = torch.empty(0, dtype=torch.float64)
        return torch.cat([none, *(costs for _, costs in self._seen)])

    def _recorded(self, phi: Tensor) -> Tensor:
        costs = super()._recorded(phi)
        self._seen.append((phi.clone(), costs))
        return costs
