"""The portfolio alone: queries pick a snapshot of fine-tunings under many losses."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.on_outputs.coordinates import coordinates
from metricopt.on_outputs.snapshots import PortfolioSettings, snapshots
from metricopt.tasks.task import Task


@METHODS.register("portfolio")
@dataclass(frozen=True)
class PortfolioSearch(Method):
    """Queries snapshots of fine-tunings, and returns the best: nothing is learned.

    The last snapshot of every loss is queried first, then those half-way, and so on.

    Attributes:
        settings: settings of the fine-tunings.
    """

    sees: ClassVar[Sees] = "loss gradients"
    settings: PortfolioSettings = field(default_factory=PortfolioSettings)

    def suits(self, task: Task) -> bool:
        """Return whether other losses are known for the task."""
        return task.statistics is not None and bool(task.portfolio)

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Query as many snapshots of every row as the budget allows."""
        archive = Archive(task, budget, rows)
        statistics = task.statistics
        assert statistics is not None
        along = coordinates(statistics, generator)
        found = snapshots(task, along, self.settings, generator, rows)
        marks = len(self.settings.marks)
        order = torch.arange(found.shape[1]).view(-1, marks).flip(1).T.flatten()
        chosen = order[: archive.remaining]
        if len(chosen):
            archive.query(found[:, chosen])
        return archive.result()
