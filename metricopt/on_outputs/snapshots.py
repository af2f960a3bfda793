"""Snapshots of fine-tunings under the losses of a portfolio: candidates for free.

Fine-tuning costs no query, so every loss that suits the task gives a line of
candidates. A query tells which of them suits the metric.
"""

from dataclasses import dataclass
from itertools import takewhile

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DivergedError
from metricopt.on_outputs.coordinates import Coordinates, Pace, descend
from metricopt.tasks.task import Task


@dataclass(frozen=True)
class PortfolioSettings:
    """How phi is fine-tuned.

    Attributes:
        marks: steps after which phi is a candidate.
        rate: about how far one step moves the statistics.
        losses: beginnings of the names of the losses that are followed; empty for all.
    """

    marks: tuple[int, ...] = (5, 10, 20, 35, 50)
    rate: float = 0.01
    losses: tuple[str, ...] = ()

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

    Shape [R, losses * marks, d], the marks of a loss together; a loss that diverges
    gives none. A call that is late gets those of the losses before.
    """
    start = torch.zeros(rows, task.size)
    found = [start[:, None, :][:, :0]]
    for name, other in task.portfolio.items():
        if settings.losses and not name.startswith(settings.losses):
            continue
        path = descend(
            lambda phi, other=other: other.losses(phi, generator),  # type: ignore[misc]
            start,
            along.scale,
            Pace(settings.rate, settings.marks[-1]),
        )
        try:
            visited = list(takewhile(lambda _: not task.is_late(), path))
        except DivergedError:
            continue
        if len(visited) < settings.marks[-1]:
            break
        found.append(torch.stack([visited[mark - 1] for mark in settings.marks], 1))
    return torch.cat(found, 1)
