"""Runs of a learned optimizer on a task: its losses, and the metric it is shown."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from metricopt.errors import DivergedError
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.inner_tasks import InnerTasks, TasksOf
from metricopt.learned_optimizers.unroll import Unroll
from metricopt.process.seeding import make_generator
from metricopt.tasks.descent import starts
from metricopt.tasks.task import Task

Cost = Callable[[Tensor], Tensor]
"""From phi [M, d] to costs [M]."""
Batches = Callable[[int], torch.Generator]
"""From a step to the source of its mini-batches."""


class ObservedRun(NamedTuple):
    """B runs in lock-step, observed as often as their optimizer is shown the metric.

    Attributes:
        path: phi_0 to phi_T, shape [B, T + 1, d].
        losses: mini-batch loss at phi_0 to phi_{T-1}, shape [B, T].
        steps: observed steps, shape [K].
        costs: costs there, shape [B, K], float64.
        frozen_at: step at which a run was stopped, or `NEVER`, shape [B].
    """

    path: Tensor
    losses: Tensor
    steps: Tensor
    costs: Tensor
    frozen_at: Tensor


class TaskRuns(InnerTasks):
    """Starts of phi on one task, each with mini-batches of its own.

    Args:
        task: gives the losses.
        start: phi_0, shape [B, d].
        batches: makes the source of a step's mini-batches. If a step may be asked for
            again, it must be a fresh generator of the same seed.
        cost: the metric of phi, or what predicts it.
        errors: by step, what was observed less what is predicted of the same phi, [B].
    """

    def __init__(
        self,
        task: Task,
        start: Tensor,
        *,
        batches: Batches,
        cost: Cost,
        errors: Mapping[int, Tensor] | None = None,
    ) -> None:
        self._task, self._start = task, start
        self._batches, self._cost = batches, cost
        self._errors = errors or {}

    def starts(self) -> Tensor:
        """Return phi_0, shape [B, d]."""
        return self._start

    def losses(self, phi: Tensor, step: int) -> Tensor:
        """Return the losses of phi [C, B, d], [C, B]; NaN where they diverge."""
        return torch.stack([self._losses(copy, step) for copy in phi])

    def costs(self, phi: Tensor, step: int) -> Tensor:
        """Return the costs of phi [C, B, d], [C, B]."""
        return self._cost(phi.flatten(0, 1)).view(phi.shape[:2])

    def shown(self, costs: Tensor, step: int) -> Tensor:
        """Return costs [C, B] without the error of the prediction at a step."""
        if step not in self._errors:
            return costs
        return (costs + self._errors[step]).clamp(0, 1)

    def _losses(self, phi: Tensor, step: int) -> Tensor:
        try:
            return self._task.losses(phi, self._batches(step))
        except DivergedError:
            if len(phi) == 1:
                return phi.sum(1) * torch.nan
        # One row has diverged, and the others go on.
        return torch.cat([self._losses(row, step) for row in phi.split(1)])


def seeded_batches(*names: object) -> Batches:
    """Return mini-batches that are the same whenever a step is asked for."""
    return lambda step: make_generator(*names, step)


def observed_steps(optimizer: LearnedOptimizer, steps: int) -> list[int]:
    """Return the K steps of a run that its optimizer is shown the metric before."""
    return [step for step in range(steps) if optimizer.observes(step)]


def runs_of(task: Task, *, deviation: float, seed: int, cost: Cost) -> TasksOf:
    """Return the runs of a task by number, to train an optimizer on.

    The same numbers are the same starts and mini-batches, so a training on them can be
    continued.

    Args:
        task: gives the losses; its metric is queried by `cost` alone.
        deviation: of every coordinate of phi_0.
        seed: other seeds give other runs.
        cost: the metric of phi [M, d], or what predicts it; not asked by a training
            whose optimizer and objective do without the metric.
    """

    def runs(numbers: Sequence[int]) -> TaskRuns:
        generators = [make_generator("start", seed, number) for number in numbers]
        start = torch.cat([starts(task.size, 1, deviation, g) for g in generators])
        batches = seeded_batches("mini-batch", seed, *numbers)
        return TaskRuns(task, start, batches=batches, cost=cost)

    return runs


@torch.no_grad()
def observed_run(
    optimizer: LearnedOptimizer,
    task: Task,
    start: Tensor,
    *,
    steps: int,
    batches: Batches,
) -> ObservedRun:
    """Run an optimizer from phi_0 [B, d], with K queries a row.

    The metric is queried where the optimizer is shown it; never, if it does not see the
    metric.
    """
    costs: list[Tensor] = []

    def observe(phi: Tensor) -> Tensor:
        costs.append(task.observe(phi))
        return costs[-1]

    family = TaskRuns(task, start, batches=batches, cost=observe)
    runs, path = Unroll(optimizer, family), [start]
    losses = runs.advance(0).losses
    for _ in range(steps):
        losses = runs.advance(1).losses
        path.append(runs.phi[0])
    observed = torch.tensor(observed_steps(optimizer, steps), dtype=torch.long)
    return ObservedRun(
        torch.stack(path, dim=1),
        losses[:-1, 0].T,
        observed,
        torch.stack(costs, dim=1) if costs else start.new_empty(len(start), 0).double(),
        runs.frozen_at[0],
    )
