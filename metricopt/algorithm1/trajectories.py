"""Line 3: fine-tuning trajectories of phi, many in lock-step, with sparse queries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError
from metricopt.tasks.descent import START_DEVIATION, OptimizerFactory, run, starts
from metricopt.tasks.task import Task

Kind = Literal["loss", "guided"]
"""Trajectories follow the loss alone, or a value function.

They differ too much to be pooled: in how far phi goes, and in how much costs vary.
"""
LOSS: Kind = "loss"
GUIDED: Kind = "guided"
KINDS = (LOSS, GUIDED)

Query = Callable[[Tensor], Tensor]
"""Observes phi [M, d] -> costs [M]."""


@dataclass(frozen=True)
class Trajectories:
    """B fine-tuning runs in lock-step, each with K sparse metric observations.

    Attributes:
        phi: adapter parameters before every step, shape [B, T, d].
        losses: mini-batch loss at every step, shape [B, T].
        steps: observed steps, shape [B, K], strictly increasing, in [0, T).
        costs: metric cost at those steps, shape [B, K], float64, in [0, 1].
    """

    phi: Tensor
    losses: Tensor
    steps: Tensor
    costs: Tensor

    def __post_init__(self) -> None:
        rows, length = self.phi.shape[:2]
        observed = (rows, self.steps.shape[-1])
        if tuple(self.losses.shape) != (rows, length):
            raise ShapeError(
                f"losses must have shape {(rows, length)} to go with phi "
                f"{tuple(self.phi.shape)}, got {tuple(self.losses.shape)}"
            )
        if not tuple(self.steps.shape) == tuple(self.costs.shape) == observed:
            raise ShapeError(
                f"steps {tuple(self.steps.shape)} and costs {tuple(self.costs.shape)} "
                f"must both have shape {observed}"
            )

    def __len__(self) -> int:
        return self.phi.shape[0]


def concatenate(parts: list[Trajectories]) -> Trajectories:
    """Join batches of trajectories of equal length T and equal K."""
    held = zip(*(vars(part).values() for part in parts), strict=True)
    return Trajectories(*map(torch.cat, held))


@dataclass(frozen=True)
class Rollout:
    """How a trajectory is made.

    Attributes:
        steps: steps T.
        observations: metric queries K per trajectory, 1 <= K <= T.
        start_deviation: phi_0 ~ N(0, start_deviation^2 I).
    """

    steps: int = 50
    observations: int = 3
    start_deviation: float = START_DEVIATION

    def __post_init__(self) -> None:
        if not 1 <= self.observations <= self.steps:
            raise ConfigError(
                f"a trajectory of {self.steps} steps needs 1 to {self.steps} "
                f"observations, got {self.observations}"
            )


def collect(
    task: Task,
    optimizer: OptimizerFactory,
    rollout: Rollout,
    *,
    rows: int,
    generator: torch.Generator,
    query: Query | None = None,
) -> Trajectories:
    """Fine-tune phi from `rows` random starts B and observe each K times.

    B * K queries are made, by `query` or else by `task.observe`. The generator is the
    source of starts, mini-batches and query times.
    """
    start = starts(task.size, rows, rollout.start_deviation, generator)
    path, losses = run(task, optimizer, start, rollout.steps, generator)
    steps = query_times(rows, rollout.steps, rollout.observations, generator)
    visited = path[torch.arange(rows)[:, None], steps]
    costs = (query or task.observe)(visited.flatten(0, 1)).view(rows, -1)
    return Trajectories(path[:, :-1], losses, steps, costs)


def collect_kinds(
    task: Task,
    optimizers: Mapping[Kind, OptimizerFactory],
    rollout: Rollout,
    *,
    rows: Mapping[Kind, int],
    generator: torch.Generator,
    query: Query | None = None,
) -> dict[Kind, Trajectories]:
    """Collect some trajectories of every kind, and keep the kinds apart; see `collect`.

    A kind without any rows is left out.
    """
    return {
        kind: collect(
            task, optimizer, rollout, rows=rows[kind], generator=generator, query=query
        )
        for kind, optimizer in optimizers.items()
        if rows[kind]
    }


def query_times(
    rows: int, steps: int, count: int, generator: torch.Generator
) -> Tensor:
    """Draw `count` of `steps` times without replacement, sorted: [rows, count]."""
    order = torch.rand(rows, steps, generator=generator).argsort(1)
    return order[:, :count].sort(1).values
