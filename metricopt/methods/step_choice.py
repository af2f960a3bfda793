"""Choose the length of guided steps, by a few runs of each judged on observe."""

from collections.abc import Callable, Sequence

from torch import Tensor

from metricopt.tasks.task import Task

TRIALS = 3
"""Fine-tuning runs per candidate step; each costs one query."""


def choose_step(
    task: Task, steps: Sequence[float], finetune: Callable[[float, int], Tensor]
) -> tuple[float, int]:
    """Return the step with the least mean cost of the last phi, and the queries spent.

    Args:
        task: the task to query.
        steps: candidates; a single one is taken without a query.
        finetune: returns the path of phi [rows, T + 1, d] for a step and a number of
            rows.
    """
    if len(steps) == 1:
        return steps[0], 0
    costs = {
        step: task.observe(finetune(step, TRIALS)[:, -1]).mean().item()
        for step in steps
    }
    return min(steps, key=lambda step: costs[step]), trial_queries(steps)


def trial_queries(steps: Sequence[float]) -> int:
    """Return the queries `choose_step` spends."""
    return TRIALS * len(steps) if len(steps) > 1 else 0
