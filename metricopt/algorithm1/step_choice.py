"""Line 14: alpha_t, chosen by a few runs of each candidate, judged on observe."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.process.seeding import drawn_seed
from metricopt.tasks.descent import Streams, paired_streams
from metricopt.tasks.task import Task

TRIALS = 3
"""Fine-tuning runs per candidate step; each costs one query."""

Finetune = Callable[[float, int, Streams], Tensor]
"""Returns the path of phi [rows, T + 1, d] for a step and a number of rows."""


def choose_step(
    task: Task,
    steps: Sequence[float],
    finetune: Finetune,
    generator: torch.Generator,
) -> tuple[float, int]:
    """Return the step with the least mean cost of the last phi, and the queries spent.

    Args:
        task: the task to query.
        steps: candidates; a single one is taken without a query.
        finetune: takes guided steps.
        generator: source of the trials; all candidates have the same ones.
    """
    if len(steps) == 1:
        return steps[0], 0
    seed = drawn_seed(generator)
    costs = {}
    for step in steps:
        streams = paired_streams(torch.Generator().manual_seed(seed))
        path = finetune(step, TRIALS, streams)
        costs[step] = task.observe(path[:, -1]).mean().item()
    return min(steps, key=lambda step: costs[step]), trial_queries(steps)


def trial_queries(steps: Sequence[float]) -> int:
    """Return the queries `choose_step` spends."""
    return TRIALS * len(steps) if len(steps) > 1 else 0
