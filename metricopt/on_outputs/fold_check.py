"""The check of a gain on parts of the observe split, for any metric.

It costs queries, and so is for metrics that no statistics explain.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.on_outputs.folds import parts_of
from metricopt.tasks.task import Task

FOLDS = 5
QUERIES = 2 * FOLDS
"""What the check of one phi costs: phi and the untouched network on every part."""


@dataclass(frozen=True)
class FoldCheck:
    """The gain of a phi over the untouched network on parts of the observe split.

    Attributes:
        gain: mean decrease of the cost.
        error: standard error of that mean.
    """

    gain: float
    error: float

    def is_shown(self, level: float) -> bool:
        """Return whether the gain exceeds 0 by so many standard errors."""
        return self.gain > level * self.error


def check_on_folds(
    task: Task, phi: Tensor, generator: torch.Generator
) -> list[FoldCheck]:
    """Query every row and the untouched network on five parts of the observe split.

    The parts have chosen phi, too: what is seen is chance, not over-fitting, so a gain
    has to exceed its error by more than one that was cross-fitted.

    Args:
        task: what is queried, `QUERIES` times for every row.
        phi: adapter parameters, shape [R, d].
        generator: draws the parts.

    Raises:
        DataError: if the metric cannot be evaluated on a part.
    """
    parts = parts_of(task, FOLDS, generator)
    both = torch.cat([torch.zeros_like(phi), phi])
    costs = [task.observe_part(both, part) for part in parts]
    untouched, moved = torch.stack(costs, 1).chunk(2)
    gains = untouched - moved
    return [
        FoldCheck(row.mean().item(), row.std().item() / math.sqrt(FOLDS))
        for row in gains
    ]
