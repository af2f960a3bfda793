"""The portfolio: fine-tunings under many losses, whose snapshots are candidates.

Fine-tuning costs no query, so every loss that suits the task gives a line of candidates
for free. A query tells which of them suits the metric.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DivergedError
from metricopt.methods.archive import Archive
from metricopt.methods.budget import Budget
from metricopt.methods.contract import METHODS, Method, Preparation, Sees
from metricopt.methods.outputs.coordinates import Coordinates, coordinates, descend
from metricopt.methods.result import FinetuneResult
from metricopt.tasks.task import Task


@dataclass(frozen=True)
class PortfolioSettings:
    """How phi is fine-tuned.

    Attributes:
        marks: steps after which phi is a candidate.
        rate: about how far one step moves the statistics.
    """

    marks: tuple[int, ...] = (5, 10, 20, 35, 50)
    rate: float = 0.01

    def __post_init__(self) -> None:
        ascending = list(self.marks) == sorted(set(self.marks))
        if not self.marks or not ascending or self.marks[0] < 1:
            raise ConfigError(
                f"marks must be steps >= 1 in ascending order, got {self.marks}"
            )


def snapshots(
    task: Task,
    along: Coordinates,
    settings: PortfolioSettings,
    generator: torch.Generator,
    rows: int,
) -> Tensor:
    """Return the candidates of R independent fine-tunings under every loss.

    Args:
        task: with its portfolio.
        along: coordinates of phi.
        settings: of the fine-tunings.
        generator: source of the mini-batches.
        rows: number R.

    Returns:
        Candidates, shape [R, losses * marks, d], the marks of a loss together; a loss
        that diverges gives none.
    """
    start = torch.zeros(rows, task.size)
    found = [start[:, None, :][:, :0]]
    for other in task.portfolio.values():
        path = descend(
            lambda phi, other=other: other.losses(phi, generator),  # type: ignore[misc]
            start,
            along.scale,
            rate=settings.rate,
            steps=settings.marks[-1],
        )
        try:
            visited = list(path)
        except DivergedError:
            continue
        found.append(torch.stack([visited[mark - 1] for mark in settings.marks], 1))
    return torch.cat(found, 1)


@METHODS.register("portfolio")
@dataclass(frozen=True)
class PortfolioSearch(Method):
    """Queries snapshots of fine-tunings, and returns the best: nothing is learned.

    The last snapshot of every loss is queried first, then those half-way, and so on.

    Attributes:
        settings: of the fine-tunings.
    """

    sees: ClassVar[Sees] = "loss gradients"
    settings: PortfolioSettings = PortfolioSettings()

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
